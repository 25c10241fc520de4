// Batches.java -- writes the batches of this folder with Kafka's own library, and checks batches that we wrote.
// SPDX-License-Identifier: Apache-2.0
//
//     java -cp "LIBS/*" Batches.java write FOLDER     LIBS: the jars of kafka-clients 3.9 and its codecs
//     java -cp "LIBS/*" Batches.java check FILE...    prints one line per batch: what a consumer would see
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;

public class Batches {
    static final int RECORDS = 200;

    static MemoryRecords batch(Compression codec) {
        ByteBuffer room = ByteBuffer.allocate(1 << 20);
        MemoryRecordsBuilder b = MemoryRecords.builder(room, RecordBatch.CURRENT_MAGIC_VALUE, codec,
            TimestampType.CREATE_TIME, 5000L, RecordBatch.NO_TIMESTAMP, 77L, (short) 1, 300, false, 4);
        for (int i = 0; i < RECORDS; i++) {
            byte[] key = i % 7 == 0 ? null : ("key-" + i).getBytes();
            byte[] value = i % 11 == 0 ? null : "value of a record, ".repeat(i % 40).getBytes();
            RecordHeader[] headers = i % 5 == 0
                ? new RecordHeader[] { new RecordHeader("h", ("x" + i).getBytes()), new RecordHeader("none", (byte[]) null) }
                : new RecordHeader[0];
            b.append(1700000000000L + i * 3, key, value, headers);
        }
        return b.build();
    }

    static void write(Path folder) throws Exception {
        Map<String, Compression> codecs = new LinkedHashMap<>();
        codecs.put("none", Compression.NONE);
        codecs.put("gzip", Compression.gzip().build());
        codecs.put("snappy", Compression.snappy().build());
        codecs.put("lz4", Compression.lz4().build());
        codecs.put("zstd", Compression.zstd().build());
        for (Map.Entry<String, Compression> e : codecs.entrySet()) {
            ByteBuffer bytes = batch(e.getValue()).buffer();
            byte[] out = new byte[bytes.remaining()];
            bytes.get(out);
            Files.write(folder.resolve("java-" + e.getKey() + ".bin"), out);
        }
    }

    static void check(String file) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(Path.of(file))));
        for (MutableRecordBatch b : records.batches()) {
            long hash = 0, n = 0;
            b.ensureValid();
            for (org.apache.kafka.common.record.Record r : b) {
                hash = hash * 31 + r.offset() - b.baseOffset();
                hash = hash * 31 + r.timestamp();
                hash = hash * 31 + (r.hasKey() ? r.key().hashCode() : 1);
                hash = hash * 31 + (r.hasValue() ? r.value().hashCode() : 1);
                hash = hash * 31 + Arrays.hashCode(r.headers());
                n++;
            }
            System.out.println(b.compressionType().name + " records=" + n + " hash=" + hash + " last=" + (b.lastOffset() - b.baseOffset())
                + " max=" + b.maxTimestamp());
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write"))
            write(Path.of(args[1]));
        else
            for (String file : Arrays.asList(args).subList(1, args.length))
                check(file);
    }
}

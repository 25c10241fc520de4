// Consume.java -- what Java's own consumer sees: Consume BOOTSTRAP TOPIC ISOLATION [BOOTSTRAP TOPIC ISOLATION...]
//
// Reads each topic from its first offset to where it ended when the read began, and prints one line per record, partition by
// partition: number of the topic, partition, timestamp type, timestamp, key, value, then name=value per header; all in hex, "-" is null.
// SPDX-License-Identifier: Apache-2.0
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Consume {
    static final long LIMIT_MS = 120_000;

    public static void main(String[] args) {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (int i = 0; i + 2 < args.length; i += 3) {
            read(args[i], args[i + 1], args[i + 2], i / 3, out);
        }
        out.flush();
        if (out.checkError()) {
            System.exit(1);
        }
    }

    static void read(String bootstrap, String topic, String isolation, int number, PrintStream out) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation,
                "enable.auto.commit", false, "auto.offset.reset", "none", "fetch.max.wait.ms", 50);
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> places = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(p -> places.add(new TopicPartition(topic, p.partition())));
            consumer.assign(places);
            consumer.seekToBeginning(places);
            Map<TopicPartition, Long> ends = consumer.endOffsets(places);
            Map<Integer, List<String>> lines = new TreeMap<>();
            long limit = System.currentTimeMillis() + LIMIT_MS;
            while (places.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                if (System.currentTimeMillis() > limit) {
                    throw new IllegalStateException(topic + ": not read to its end");
                }
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                    if (r.offset() < ends.get(new TopicPartition(topic, r.partition()))) {
                        lines.computeIfAbsent(r.partition(), p -> new ArrayList<>()).add(number + " " + line(r));
                    }
                }
            }
            lines.values().forEach(l -> l.forEach(out::println));
        }
    }

    static String line(ConsumerRecord<byte[], byte[]> r) {
        StringBuilder s = new StringBuilder();
        s.append(r.partition()).append(' ').append(r.timestampType()).append(' ').append(r.timestamp());
        s.append(' ').append(hex(r.key())).append(' ').append(hex(r.value()));
        for (Header h : r.headers()) {
            s.append(' ').append(hex(h.key().getBytes(StandardCharsets.UTF_8))).append('=').append(hex(h.value()));
        }
        return s.toString();
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}

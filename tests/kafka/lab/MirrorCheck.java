/* MirrorCheck.java -- prints, as one JSON object, what the Java MirrorClient sees on a target cluster.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   java -cp "LIBS/*" MirrorCheck.java BOOTSTRAP SOURCE_ALIAS GROUP [key=value ...]
 *
 * Extra key=value arguments are passed to the client configuration, for example
 * replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
 * The member "translateOffsetsOfPattern" (all groups at once, regular expression ".*") appears
 * with client libraries 4.3 or later only.
 * Exit status: 0 answered, 1 a call failed, 2 wrong arguments.
 */
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class MirrorCheck {

    static String quote(String s) {
        if (s == null)
            return "null";
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\')
                b.append('\\').append(c);
            else if (c < 0x20)
                b.append(String.format("\\u%04x", (int) c));
            else
                b.append(c);
        }
        return b.append('"').toString();
    }

    static String array(Collection<String> names) {
        List<String> out = new ArrayList<>();
        for (String n : new TreeSet<>(names))
            out.add(quote(n));
        return "[" + String.join(", ", out) + "]";
    }

    static String offsets(Map<TopicPartition, OffsetAndMetadata> map) {
        TreeMap<String, String> out = new TreeMap<>();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> e : map.entrySet())
            out.put(String.format("%s %08d", e.getKey().topic(), e.getKey().partition()),
                "{\"topic\": " + quote(e.getKey().topic()) + ", \"partition\": " + e.getKey().partition()
                + ", \"offset\": " + e.getValue().offset() + ", \"metadata\": " + quote(e.getValue().metadata()) + "}");
        return "[" + String.join(",\n    ", out.values()) + "]";
    }

    /* The call with a pattern exists since 4.3, so it is looked up by name; null = not there. */
    static String offsetsOfPattern(Map<String, Object> props, String alias, Duration wait) throws Exception {
        Method call;
        try {
            call = RemoteClusterUtils.class.getMethod("translateOffsets", Map.class, String.class,
                Pattern.class, Duration.class);
        } catch (NoSuchMethodException e) {
            return null;
        }
        Map<?, ?> groups;
        try {
            groups = (Map<?, ?>) call.invoke(null, props, alias, Pattern.compile(".*"), wait);
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
        }
        TreeMap<String, String> out = new TreeMap<>();
        for (Map.Entry<?, ?> e : groups.entrySet()) {
            @SuppressWarnings("unchecked")
            Map<TopicPartition, OffsetAndMetadata> map = (Map<TopicPartition, OffsetAndMetadata>) e.getValue();
            out.put(e.getKey().toString(), quote(e.getKey().toString()) + ": " + offsets(map));
        }
        return "{" + String.join(",\n    ", out.values()) + "}";
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            System.err.println("usage: MirrorCheck BOOTSTRAP SOURCE_ALIAS GROUP [key=value ...]");
            System.exit(2);
        }
        String alias = args[1];
        String group = args[2];
        Map<String, Object> props = new HashMap<>();
        props.put("bootstrap.servers", args[0]);
        for (int i = 3; i < args.length; i++) {
            int eq = args[i].indexOf('=');
            if (eq <= 0) {
                System.err.println("not key=value: " + args[i]);
                System.exit(2);
            }
            props.put(args[i].substring(0, eq), args[i].substring(eq + 1));
        }
        Map<String, String> out = new TreeMap<>();
        int rc = 0;
        Duration wait = Duration.ofSeconds(20);
        try (MirrorClient client = new MirrorClient(props)) {
            out.put("upstreamClusters", array(client.upstreamClusters()));
            out.put("remoteTopics", array(client.remoteTopics()));
            out.put("remoteTopicsOfSource", array(client.remoteTopics(alias)));
            out.put("heartbeatTopics", array(client.heartbeatTopics()));
            out.put("checkpointTopics", array(client.checkpointTopics()));
            out.put("replicationHops", String.valueOf(client.replicationHops(alias)));
            out.put("replicationHopsUnknownAlias", String.valueOf(client.replicationHops("no-such-alias")));
            out.put("remoteConsumerOffsets", offsets(client.remoteConsumerOffsets(group, alias, wait)));
            out.put("utilsUpstreamClusters", array(RemoteClusterUtils.upstreamClusters(props)));
            out.put("utilsHeartbeatTopics", array(RemoteClusterUtils.heartbeatTopics(props)));
            out.put("utilsCheckpointTopics", array(RemoteClusterUtils.checkpointTopics(props)));
            out.put("utilsReplicationHops", String.valueOf(RemoteClusterUtils.replicationHops(props, alias)));
            out.put("translateOffsets", offsets(RemoteClusterUtils.translateOffsets(props, alias, group, wait)));
            String all = offsetsOfPattern(props, alias, wait);
            if (all != null)
                out.put("translateOffsetsOfPattern", all);
        } catch (Exception e) {
            out.put("error", quote(e.toString()));
            rc = 1;
        }
        List<String> lines = new ArrayList<>();
        for (Map.Entry<String, String> e : out.entrySet())
            lines.add("  " + quote(e.getKey()) + ": " + e.getValue());
        System.out.println("{\n" + String.join(",\n", lines) + "\n}");
        System.exit(rc);
    }
}

/* TopicLists.java -- which topics MirrorMaker 2's own filter takes for a flow a->b by each of some configuration files.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   java -cp "LIBS/*" TopicLists NAMES FILE...
 *
 * NAMES is a list of topics with commas between them. Per file one line: the topics that are taken, with commas between
 * them, or "!" and the reason why the file is refused.
 * Exit status: 0.
 */
import java.io.FileInputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.connect.mirror.DefaultTopicFilter;

public class TopicLists {

    static String taken(String[] names, String file) throws Exception {
        Properties p = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            p.load(in);
        }
        Map<String, String> flow = new HashMap<>(); // as MirrorMakerConfig does it, which would load all plugins for it
        p.forEach((k, v) -> flow.put((String) k, (String) v));
        p.forEach((k, v) -> {
            if (((String) k).startsWith("a->b."))
                flow.put(((String) k).substring("a->b.".length()), (String) v);
        });
        DefaultTopicFilter filter = new DefaultTopicFilter();
        filter.configure(flow);
        List<String> out = new ArrayList<>();
        for (String name : names)
            if (filter.shouldReplicateTopic(name))
                out.add(name);
        return String.join(",", out);
    }

    public static void main(String[] args) {
        for (int i = 1; i < args.length; i++) {
            String line;
            try {
                line = taken(args[0].split(","), args[i]);
            } catch (Exception e) {
                line = "! " + e.toString().replace('\n', ' ');
            }
            System.out.println(line);
        }
    }
}

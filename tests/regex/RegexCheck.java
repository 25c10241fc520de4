// RegexCheck.java -- answers patterns and names with java.util.regex, in the format of driver.c.
// SPDX-License-Identifier: Apache-2.0
//
// java RegexCheck.java PATTERNS [NAMES]. Without names a first line tells which characters are assigned.
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntPredicate;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

public class RegexCheck {
    static List<String> readLines(String path) throws Exception {
        List<String> out = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(path), StandardCharsets.ISO_8859_1)) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            for (int i = 0; i < line.length(); i++) {
                if (line.charAt(i) == '%' && i + 2 < line.length()) {
                    bytes.write(Integer.parseInt(line.substring(i + 1, i + 3), 16));
                    i += 2;
                } else {
                    bytes.write(line.charAt(i));
                }
            }
            out.add(new String(bytes.toByteArray(), StandardCharsets.UTF_8));
        }
        return out;
    }

    static String ranges(IntPredicate yes) {
        StringBuilder out = new StringBuilder();
        int from = -1;
        for (int c = 0; c <= 0x110000; c++) {
            boolean now = c < 0x110000 && !(c >= 0xd800 && c <= 0xdfff) && yes.test(c);
            if (now && from < 0) {
                from = c;
            } else if (!now && from >= 0) {
                out.append(Integer.toHexString(from)).append('-').append(Integer.toHexString(c - 1)).append(' ');
                from = -1;
            }
        }
        return out.toString();
    }

    static char answer(Pattern p, String name) throws Exception {
        CompletableFuture<Boolean> f = new CompletableFuture<>();
        Thread t = new Thread(null, () -> {
            try {
                f.complete(p.matcher(name).matches());
            } catch (Throwable e) {
                f.completeExceptionally(e);
            }
        }, "match", 64 << 20);
        t.setDaemon(true);
        t.start();
        try {
            return f.get(5, TimeUnit.SECONDS) ? '1' : '0';
        } catch (TimeoutException e) {
            return 'S';
        } catch (ExecutionException e) {
            return 'X';
        }
    }

    static String answers(Pattern p, List<String> names) throws Exception {
        CompletableFuture<String> f = new CompletableFuture<>();
        Thread t = new Thread(null, () -> {
            StringBuilder out = new StringBuilder();
            try {
                for (String name : names)
                    out.append(p.matcher(name).matches() ? '1' : '0');
                f.complete(out.toString());
            } catch (Throwable e) {
                f.completeExceptionally(e);
            }
        }, "match", 64 << 20);
        t.setDaemon(true);
        t.start();
        try {
            return f.get(5, TimeUnit.SECONDS);
        } catch (TimeoutException | ExecutionException e) {
            StringBuilder out = new StringBuilder(); // name by name, to see which one it was
            for (String name : names)
                out.append(answer(p, name));
            return out.toString();
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        List<String> names = args.length > 1 ? readLines(args[1]) : null;
        if (names == null)
            out.println(ranges(Character::isDefined));
        for (String text : readLines(args[0])) {
            try {
                Pattern p = Pattern.compile(text);
                if (names == null)
                    out.println(ranges(c -> p.matcher(Character.toString(c)).matches()));
                else
                    out.println(answers(p, names));
            } catch (PatternSyntaxException e) {
                out.println("E " + e.getDescription().replaceAll("[^ -~]", "?"));
            } catch (Throwable e) {
                out.println("E " + e.toString().replaceAll("[^ -~]", "?"));
            }
        }
        out.flush();
        System.exit(0);
    }
}

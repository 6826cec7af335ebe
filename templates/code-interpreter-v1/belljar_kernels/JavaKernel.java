// The kernel for Java, on JShell: one line of JSON in, events on descriptor 3. What the code declares stays for the next run. A running JVM cannot
// change its environment, so variables are system properties here.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import jdk.jshell.*;
import jdk.jshell.Snippet.Kind;
import jdk.jshell.Snippet.SubKind;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;

public final class JavaKernel {
    private static final String[] IMPORTED = {
        "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.time.*", "java.util.*", "java.util.concurrent.*", "java.util.function.*",
        "java.util.regex.*", "java.util.stream.*",
    };
    private static OutputStream events;

    public static void main(String[] arguments) throws IOException {
        events = new FileOutputStream("/proc/self/fd/3");
        System.setOut(new PrintStream(new Told("stdout"), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Told("stderr"), true, StandardCharsets.UTF_8));
        JShell shell = JShell.builder().executionEngine("local").build();
        for (String packages : IMPORTED) {
            shell.eval("import " + packages + ";");
        }
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> shell.stop());
        send("{\"event\":\"ready\"}");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<?, ?> request = (Map<?, ?>) new Json(line).value();
            set((Map<?, ?>) request.get("env"));
            try {
                run(shell, (String) request.get("code"));
            } catch (RuntimeException error) {
                fail(error.getClass().getName(), String.valueOf(error.getMessage()), List.of());
            } finally {
                System.out.flush();
                System.err.flush();
                set((Map<?, ?>) request.get("after"));
                send("{\"event\":\"done\"}");
            }
        }
    }

    private static void run(JShell shell, String code) {
        SnippetEvent last = null;
        for (String rest = code; !rest.isBlank(); ) {
            CompletionInfo part = shell.sourceCodeAnalysis().analyzeCompletion(rest);
            boolean complete = part.completeness().isComplete();
            String source = complete ? part.source() : rest;
            for (SnippetEvent event : shell.eval(source)) {
                // The first is for the snippet itself, the others for those that depend on it.
                if (event.causeSnippet() == null) {
                    if (!accepted(shell, event)) {
                        return;
                    }
                    last = event;
                }
            }
            rest = complete ? part.remaining() : "";
        }
        if (last != null && last.value() != null && isExpression(last.snippet()) && !last.value().isEmpty()) {
            send("{\"event\":\"result\",\"main\":true,\"data\":{\"text/plain\":" + Json.text(last.value()) + "}}");
        }
    }

    private static boolean isExpression(Snippet snippet) {
        return snippet.kind() == Kind.EXPRESSION || snippet.subKind() == SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
    }

    private static boolean accepted(JShell shell, SnippetEvent event) {
        if (event.status() == Snippet.Status.REJECTED) {
            StringBuilder words = new StringBuilder();
            shell.diagnostics(event.snippet()).filter(Diag::isError).forEach(one -> words.append(words.length() == 0 ? "" : "\n").append(one.getMessage(Locale.ROOT)));
            String value = words.length() == 0 ? "this cannot be compiled" : words.toString();
            fail("CompilationException", value, List.of("CompilationException: " + value));
            return false;
        }
        JShellException thrown = event.exception();
        if (thrown != null) {
            String name = thrown instanceof EvalException ? ((EvalException) thrown).getExceptionClassName() : thrown.getClass().getName();
            String value = String.valueOf(thrown.getMessage());
            List<String> trace = new ArrayList<>(List.of(name + ": " + value));
            for (StackTraceElement element : thrown.getStackTrace()) {
                trace.add("    at " + element);
            }
            fail(name, value, trace);
            return false;
        }
        if (event.status() == Snippet.Status.VALID && event.value() == null && event.snippet().kind() == Kind.ERRONEOUS) {
            fail("CompilationException", "this cannot be compiled", List.of());
            return false;
        }
        return true;
    }

    private static void fail(String name, String value, List<String> trace) {
        StringJoiner lines = new StringJoiner(",", "[", "]");
        trace.forEach(line -> lines.add(Json.text(line)));
        send("{\"event\":\"error\",\"name\":" + Json.text(name) + ",\"value\":" + Json.text(value) + ",\"traceback\":" + lines + "}");
    }

    private static void set(Map<?, ?> values) {
        if (values == null) {
            return;
        }
        values.forEach((name, value) -> {
            if (value == null) {
                System.clearProperty((String) name);
            } else {
                System.setProperty((String) name, (String) value);
            }
        });
    }

    private static synchronized void send(String event) {
        try {
            events.write((event + "\n").getBytes(StandardCharsets.UTF_8));
            events.flush();
        } catch (IOException error) {
            // Nobody listens any more.
            Runtime.getRuntime().halt(1);
        }
    }

    /** What is printed, as events. */
    private static final class Told extends ByteArrayOutputStream {
        private final String stream;

        Told(String stream) {
            this.stream = stream;
        }

        @Override
        public synchronized void flush() {
            if (count > 0) {
                send("{\"event\":\"" + stream + "\",\"text\":" + Json.text(toString(StandardCharsets.UTF_8)) + "}");
                reset();
            }
        }
    }

    /** As much of JSON as requests are made of. */
    private static final class Json {
        private final String line;
        private int at;

        Json(String line) {
            this.line = line;
        }

        Object value() {
            skip();
            char next = line.charAt(at);
            if (next == '"') {
                return string();
            }
            if (next == '{') {
                return object();
            }
            at += 4;
            return null;
        }

        private Map<String, Object> object() {
            Map<String, Object> found = new LinkedHashMap<>();
            at++;
            for (skip(); line.charAt(at) != '}'; skip()) {
                if (line.charAt(at) == ',') {
                    at++;
                    skip();
                }
                String name = string();
                skip();
                at++;
                found.put(name, value());
            }
            at++;
            return found;
        }

        private String string() {
            StringBuilder text = new StringBuilder();
            for (at++; line.charAt(at) != '"'; at++) {
                char next = line.charAt(at);
                if (next != '\\') {
                    text.append(next);
                    continue;
                }
                char escaped = line.charAt(++at);
                switch (escaped) {
                    case 'n': text.append('\n'); break;
                    case 't': text.append('\t'); break;
                    case 'r': text.append('\r'); break;
                    case 'b': text.append('\b'); break;
                    case 'f': text.append('\f'); break;
                    case 'u': text.append((char) Integer.parseInt(line.substring(at + 1, at + 5), 16)); at += 4; break;
                    default: text.append(escaped);
                }
            }
            at++;
            return text.toString();
        }

        private void skip() {
            while (Character.isWhitespace(line.charAt(at))) {
                at++;
            }
        }

        static String text(String text) {
            StringBuilder quoted = new StringBuilder("\"");
            for (int i = 0; i < text.length(); i++) {
                char next = text.charAt(i);
                if (next == '"' || next == '\\') {
                    quoted.append('\\').append(next);
                } else if (next < 0x20 || Character.isSurrogate(next)) {
                    quoted.append(String.format("\\u%04x", (int) next));
                } else {
                    quoted.append(next);
                }
            }
            return quoted.append('"').toString();
        }
    }
}

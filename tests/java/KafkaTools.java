import java.io.ByteArrayOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools, one call after the other in one JVM, whose start costs more than most calls.
 *
 * A line of standard input is a call: the main class and its arguments, tabs between them. The answer is a line with the exit
 * code and the number of bytes that the tool has printed, then these bytes, what it said on standard error behind the rest.
 */
public final class KafkaTools {
    /** A tool asks for the end of its process; no {@code catch (Exception)} takes that for a failure. */
    private static final class Ended extends Error {
    }

    private static Integer code;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.Procedure end = (status, message) -> {
            code = code == null ? status : code;
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            String[] words = line.split("\t", -1);
            byte[] printed = call(words[0], Arrays.copyOfRange(words, 1, words.length));
            answers.print(code + " " + printed.length + "\n");
            answers.write(printed);
            answers.flush();
        }
    }

    private static byte[] call(String mainClass, String[] arguments) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        code = null;
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (!(failure.getCause() instanceof Ended)) {
                failure.getCause().printStackTrace();
                code = code == null ? 1 : code;
            }
        }
        code = code == null ? 0 : code;
        System.out.flush();
        System.err.flush();
        err.writeTo(out);
        return out.toByteArray();
    }
}

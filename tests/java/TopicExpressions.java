import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Prints which topics match a regular expression of Apache Kafka's engine, RE2/J. The first line of the input has the names of the
 * topics, with spaces between them, and each other line has an expression in hexadecimal UTF-8. Output: for each expression a 1 or 0
 * for each topic, or the reason why it is not valid.
 */
public class TopicExpressions {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String[] topics = in.readLine().split(" ");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(matches(new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8), topics));
        }
    }

    private static String matches(String expression, String[] topics) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(expression);
        } catch (PatternSyntaxException exception) {
            return exception.getDescription();
        }
        StringBuilder found = new StringBuilder();
        for (String topic : topics) {
            found.append(pattern.matcher(topic).matches() ? '1' : '0');
        }
        return found.toString();
    }
}

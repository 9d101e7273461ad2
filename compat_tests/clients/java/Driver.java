import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;

/**
 * The far end of the driver pipe.py: kafka-clients, served over stdin and stdout.
 *
 * A line is a JSON object, byte arrays in it are base64. A call is {"object", "method", "arguments"}; object 0 makes the
 * others. An answer is {"value"}, {"failure", "code"} for what Kafka or its client reported, or {"error"} with a trace for
 * anything else. Calls are answered one by one on this thread, which is what KafkaConsumer wants. When stdin ends the
 * process is gone at once, and what is open stays open, as after a kill.
 */
public class Driver {
    /** A producer, consumer or admin client. */
    interface Role {
        Object call(String method, JsonNode arguments) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOKEN_URL = "sasl.oauthbearer.token.endpoint.url";
    private final List<Role> objects = new ArrayList<>();
    private final Map<String, Object> wayIn = new HashMap<>();

    Driver(String bootstrap) {
        objects.add((method, arguments) -> {
            if (method.equals("secure")) {
                secure(arguments.get("properties"));
                return null;
            }
            objects.add(switch (method) {
                case "producer" -> new ProducerRole(bootstrap, wayIn, arguments);
                case "consumer" -> new ConsumerRole(bootstrap, wayIn, arguments);
                case "admin" -> new AdminRole(bootstrap, wayIn);
                default -> throw new IllegalArgumentException(method);
            });
            return objects.size() - 1;
        });
    }

    private void secure(JsonNode properties) {
        wayIn.clear();
        properties.fields().forEachRemaining(each -> wayIn.put(each.getKey(), each.getValue().asText()));
        if (wayIn.containsKey(TOKEN_URL)) {
            // Where a token may come from is not for the configuration alone to say (CVE-2025-27817).
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", (String) wayIn.get(TOKEN_URL));
        }
    }

    private Map<String, Object> answer(JsonNode call) {
        try {
            JsonNode arguments = call.get("arguments");
            Role role = objects.get(call.get("object").asInt());
            String method = call.get("method").asText();
            if (method.equals("send_offsets")) {
                ConsumerRole consumer = (ConsumerRole) objects.get(arguments.get("group").asInt());
                ((ProducerRole) role).sendOffsets(arguments.get("offsets"), consumer.group());
                return Collections.singletonMap("value", null);
            }
            return Collections.singletonMap("value", role.call(method, arguments));
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            Map<String, Object> answer = new HashMap<>();
            if (cause instanceof KafkaException || cause instanceof TimeoutException) {
                StringBuilder text = new StringBuilder(cause.toString());
                for (Throwable deeper = cause.getCause(); deeper != null; deeper = deeper.getCause()) {
                    text.append("; ").append(deeper);
                }
                answer.put("failure", text.toString());
                answer.put("code", (int) Errors.forException(cause).code());
            } else {
                StringWriter trace = new StringWriter();
                cause.printStackTrace(new PrintWriter(trace));
                answer.put("error", trace.toString());
            }
            return answer;
        }
    }

    /** [topic, partition, ...], the shape in which partitions come and go. */
    static TopicPartition partition(JsonNode where) {
        return new TopicPartition(where.get(0).asText(), where.get(1).asInt());
    }

    /** Text, or null for JSON's null. */
    static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    /** Bytes, or null for JSON's null. */
    static byte[] bytes(JsonNode node) throws java.io.IOException {
        return node.isNull() ? null : node.binaryValue();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Driver driver = new Driver(arguments[0]);
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            answers.write(JSON.writeValueAsBytes(driver.answer(JSON.readTree(line))));
            answers.write('\n');
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}

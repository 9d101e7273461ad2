import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A share consumer that does what it is told on standard input, a command a line, and says on standard output what came of it.
 *
 * Arguments: the bootstrap servers, the group, then settings as NAME=VALUE.
 * Commands: subscribe TOPIC; poll MILLISECONDS (a line "TOPIC PARTITION OFFSET COUNT VALUE" for each record); acknowledge TOPIC
 * PARTITION OFFSET TYPE; commit (a line "TOPIC PARTITION ERROR" for each partition); lock; close. Each ends with the line "done",
 * or with one that begins with "failed".
 */
public final class ShareReader {
    /** What polls have given, by topic, partition and offset. */
    private static final Map<String, ConsumerRecord<String, String>> RECORDS = new HashMap<>();

    private ShareReader() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        for (int i = 2; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        StringDeserializer strings = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings, strings, strings)) {
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                try {
                    run(consumer, words);
                    System.out.println("done");
                } catch (KafkaException | IllegalStateException error) {
                    System.out.println("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
                }
                System.out.flush();
                if (words[0].equals("close")) {
                    break;
                }
            }
        }
    }

    private static void run(KafkaShareConsumer<String, String> consumer, String[] words) {
        switch (words[0]) {
            case "subscribe" -> consumer.subscribe(List.of(words[1]));
            case "poll" -> {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(Long.parseLong(words[1])))) {
                    RECORDS.put(each.topic() + " " + each.partition() + " " + each.offset(), each);
                    System.out.printf("%s %d %d %d %s%n", each.topic(), each.partition(), each.offset(),
                        each.deliveryCount().orElse((short) -1), each.value());
                }
            }
            case "acknowledge" -> consumer.acknowledge(RECORDS.get(words[1] + " " + words[2] + " " + words[3]),
                AcknowledgeType.valueOf(words[4].toUpperCase(Locale.ROOT)));
            case "commit" -> {
                Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync();
                results.forEach((where, error) -> System.out.printf("%s %d %s%n", where.topic(), where.partition(),
                    error.map(each -> each.getClass().getSimpleName()).orElse("-")));
            }
            case "lock" -> System.out.println(consumer.acquisitionLockTimeoutMs().orElse(-1));
            case "close" -> consumer.close();
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}

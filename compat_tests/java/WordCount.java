import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams' word count, exactly once, until SIGTERM.
 *
 *     WordCount BOOTSTRAP APPLICATION_ID STATE_FOLDER SOURCE TARGET
 *
 * Each word of a line in SOURCE becomes a record in TARGET: the word, and how often it has been seen by then. Without a
 * cache in front of the store no count is left out.
 */
public class WordCount {
    public static void main(String[] arguments) {
        Properties configs = new Properties();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("application.id", arguments[1]);
        configs.put("state.dir", arguments[2]);
        configs.put("processing.guarantee", "exactly_once_v2");
        configs.put("statestore.cache.max.bytes", 0);
        configs.put("num.stream.threads", 2);
        // How long the partitions of a process that was killed wait for it.
        configs.put("session.timeout.ms", 6_000);
        configs.put("heartbeat.interval.ms", 500);
        // And what it had not committed, when it does not come back.
        configs.put("producer.transaction.timeout.ms", 5_000);
        configs.put("reconnect.backoff.max.ms", 500);

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[3], Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count()
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(arguments[4], Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), configs);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
    }
}

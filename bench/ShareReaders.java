import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Share consumers of one group in one JVM, with implicit acknowledgement and the settings that consumers have by default.
 *
 * Arguments: the bootstrap servers, the number of consumers.
 * Commands on standard input: join GROUP TOPIC (the line "ready" when all members have partitions); read COUNT (the line "SECONDS
 * CPU_SECONDS RECORDS" when they have read so many records together and have left the group).
 */
public final class ShareReaders {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private ShareReaders() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        int count = Integer.parseInt(arguments[1]);
        List<KafkaShareConsumer<byte[], byte[]>> consumers = new ArrayList<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(settings)) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("join")) {
                    settings.put("group.id", words[1]);
                    for (int number = 0; number < count; number++) {
                        consumers.add(joined(settings, words[2]));
                    }
                    awaitPartitions(admin, words[1], count);
                    System.out.println("ready");
                } else {
                    System.out.println(read(consumers, Long.parseLong(words[1])));
                    consumers.clear();
                }
                System.out.flush();
            }
        }
    }

    /** A consumer that joins; what it fetches once it has partitions is read later. */
    private static KafkaShareConsumer<byte[], byte[]> joined(Properties settings, String topic) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes);
        consumer.subscribe(List.of(topic));
        consumer.poll(Duration.ZERO);
        return consumer;
    }

    private static void awaitPartitions(Admin admin, String group, int count) throws Exception {
        while (true) {
            ShareGroupDescription found = admin.describeShareGroups(List.of(group)).describedGroups().get(group).get();
            long assigned = found.members().stream().filter(each -> !each.assignment().topicPartitions().isEmpty()).count();
            if (assigned == count) {
                return;
            }
            Thread.sleep(50);
        }
    }

    private static String read(List<KafkaShareConsumer<byte[], byte[]>> consumers, long wanted) throws Exception {
        AtomicLong left = new AtomicLong(wanted);
        AtomicLong ended = new AtomicLong();
        long cpu = SYSTEM.getProcessCpuTime();
        long began = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (KafkaShareConsumer<byte[], byte[]> consumer : consumers) {
            Thread thread = new Thread(() -> {
                while (left.get() > 0) {
                    int got = consumer.poll(POLL).count();
                    if (got > 0 && left.addAndGet(-got) <= 0) {
                        ended.compareAndSet(0, System.nanoTime());
                    }
                }
            });
            thread.start();
            threads.add(thread);
        }
        while (ended.get() == 0) {
            Thread.sleep(1);
        }
        double used = (SYSTEM.getProcessCpuTime() - cpu) / 1e9;
        for (Thread thread : threads) {
            thread.join();
        }
        for (KafkaShareConsumer<byte[], byte[]> consumer : consumers) {
            consumer.close();
        }
        return (ended.get() - began) / 1e9 + " " + used + " " + (wanted - left.get());
    }
}

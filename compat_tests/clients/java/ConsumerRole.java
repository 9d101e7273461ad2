import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** KafkaConsumer, of either group protocol. */
class ConsumerRole implements Driver.Role {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<Object> rebalances = new ArrayList<>();

    ConsumerRole(String bootstrap, Map<String, Object> wayIn, JsonNode settings) {
        String groupId = Driver.text(settings.get("group_id"));
        Map<String, Object> configs = new HashMap<>(wayIn);
        configs.put("bootstrap.servers", bootstrap);
        configs.put("client.id", settings.get("client_id").asText());
        if (settings.get("group_protocol").asText().equals("consumer")) {
            configs.put("group.protocol", "consumer");
            if (!settings.get("remote_assignor").isNull()) {
                configs.put("group.remote.assignor", settings.get("remote_assignor").asText());
            }
        } else {
            configs.put("group.protocol", "classic");
            configs.put("session.timeout.ms", settings.get("session_timeout_ms").asInt());
            configs.put("heartbeat.interval.ms", settings.get("heartbeat_interval_ms").asInt());
        }
        configs.put("max.poll.interval.ms", settings.get("max_poll_interval_ms").asInt());
        configs.put("auto.offset.reset", settings.get("auto_offset_reset").asText());
        configs.put("enable.auto.commit", settings.get("auto_commit").asBoolean() && groupId != null);
        configs.put("auto.commit.interval.ms", settings.get("auto_commit_interval_ms").asInt());
        configs.put("fetch.max.wait.ms", settings.get("fetch_max_wait_ms").asInt());
        configs.put("fetch.min.bytes", settings.get("fetch_min_bytes").asInt());
        configs.put("fetch.max.bytes", settings.get("fetch_max_bytes").asInt());
        configs.put("max.partition.fetch.bytes", settings.get("max_partition_fetch_bytes").asInt());
        configs.put("isolation.level", settings.get("read_committed").asBoolean() ? "read_committed" : "read_uncommitted");
        configs.put("request.timeout.ms", 60_000);
        configs.put("default.api.timeout.ms", 60_000);
        configs.put("metadata.max.age.ms", 1_000);
        configs.put("reconnect.backoff.max.ms", 500);
        // A topic that a test deletes stays away, as with the consumers of other libraries.
        configs.put("allow.auto.create.topics", false);
        if (groupId != null) {
            configs.put("group.id", groupId);
        }
        if (!settings.get("group_instance_id").isNull()) {
            configs.put("group.instance.id", settings.get("group_instance_id").asText());
        }
        consumer = new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    ConsumerGroupMetadata group() {
        return consumer.groupMetadata();
    }

    @Override
    public Object call(String method, JsonNode arguments) throws Exception {
        switch (method) {
            case "assign" -> assign(arguments.get("starts"));
            case "subscribe" -> {
                List<String> topics = new ArrayList<>();
                arguments.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics, noted());
            }
            case "subscribe_pattern" ->
                    consumer.subscribe(Pattern.compile(arguments.get("pattern").asText()), noted());
            case "subscribe_broker_pattern" -> subscribeBrokerPattern(arguments.get("pattern").asText());
            case "seek" -> consumer.seek(Driver.partition(arguments.get("where")), arguments.get("offset").asLong());
            case "commit" -> commit(arguments.get("offsets"));
            case "close" -> consumer.close(Duration.ofSeconds(5));
            default -> {
                return ask(method, arguments);
            }
        }
        return null;
    }

    /** The methods that have an answer. */
    private Object ask(String method, JsonNode arguments) {
        if (method.equals("poll")) {
            List<Object> messages = new ArrayList<>();
            consumer.poll(Duration.ofMillis(arguments.get("timeout_ms").asLong()))
                    .forEach(record -> messages.add(message(record)));
            return messages;
        }
        if (method.equals("rebalances")) {
            return rebalances;
        }
        if (method.equals("assignment")) {
            return listed(consumer.assignment());
        }
        TopicPartition where = Driver.partition(arguments.get("where"));
        switch (method) {
            case "position":
                return consumer.position(where);
            case "committed":
                OffsetAndMetadata at = consumer.committed(Set.of(where)).get(where);
                return at == null ? null : List.of(at.offset(), at.metadata());
            case "watermarks":
                List<TopicPartition> wanted = List.of(where);
                return List.of(consumer.beginningOffsets(wanted).get(where), consumer.endOffsets(wanted).get(where));
            case "offset_for_time":
                Map<TopicPartition, Long> times = Map.of(where, arguments.get("timestamp_ms").asLong());
                OffsetAndTimestamp found = consumer.offsetsForTimes(times).get(where);
                return found == null ? null : found.offset();
            default:
                throw new IllegalArgumentException(method);
        }
    }

    private static List<Object> listed(Collection<TopicPartition> partitions) {
        List<Object> listed = new ArrayList<>();
        partitions.forEach(where -> listed.add(List.of(where.topic(), where.partition())));
        return listed;
    }

    /** A listener that notes what comes and goes. */
    private ConsumerRebalanceListener noted() {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                rebalances.add(List.of("assigned", listed(partitions)));
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                rebalances.add(List.of("revoked", listed(partitions)));
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                rebalances.add(List.of("lost", listed(partitions)));
            }
        };
    }

    /** By SubscriptionPattern, which the library has since 4.0, and this program is compiled against an older one. */
    private void subscribeBrokerPattern(String pattern) throws Exception {
        Class<?> kind = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
        KafkaConsumer.class.getMethod("subscribe", kind, ConsumerRebalanceListener.class)
                .invoke(consumer, kind.getConstructor(String.class).newInstance(pattern), noted());
    }

    private void assign(JsonNode starts) {
        List<TopicPartition> partitions = new ArrayList<>();
        starts.forEach(start -> partitions.add(Driver.partition(start)));
        consumer.assign(partitions);
        for (JsonNode start : starts) {
            TopicPartition where = Driver.partition(start);
            switch (start.get(2).asText()) {
                case "beginning" -> consumer.seekToBeginning(List.of(where));
                case "end" -> consumer.seekToEnd(List.of(where));
                default -> consumer.seek(where, start.get(2).asLong());
            }
        }
    }

    private void commit(JsonNode wanted) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode each : wanted) {
            offsets.put(Driver.partition(each), new OffsetAndMetadata(each.get(2).asLong(), each.get(3).asText()));
        }
        consumer.commitSync(offsets);
    }

    private static List<Object> message(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), header.value()));
        }
        return List.of(
                List.of(record.topic(), record.partition(), record.offset(), record.timestamp(), record.timestampType().id),
                Arrays.asList(record.key(), record.value()),
                headers);
    }
}

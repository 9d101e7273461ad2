import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** KafkaConsumer, of the classic group protocol. */
class ConsumerRole implements Driver.Role {
    private final KafkaConsumer<byte[], byte[]> consumer;

    ConsumerRole(String bootstrap, Map<String, Object> wayIn, JsonNode settings) {
        String groupId = Driver.text(settings.get("group_id"));
        Map<String, Object> configs = new HashMap<>(wayIn);
        configs.put("bootstrap.servers", bootstrap);
        configs.put("client.id", settings.get("client_id").asText());
        configs.put("group.protocol", "classic");
        configs.put("auto.offset.reset", settings.get("auto_offset_reset").asText());
        configs.put("enable.auto.commit", settings.get("auto_commit").asBoolean() && groupId != null);
        configs.put("auto.commit.interval.ms", settings.get("auto_commit_interval_ms").asInt());
        configs.put("fetch.max.wait.ms", settings.get("fetch_max_wait_ms").asInt());
        configs.put("fetch.min.bytes", settings.get("fetch_min_bytes").asInt());
        configs.put("fetch.max.bytes", settings.get("fetch_max_bytes").asInt());
        configs.put("max.partition.fetch.bytes", settings.get("max_partition_fetch_bytes").asInt());
        configs.put("session.timeout.ms", settings.get("session_timeout_ms").asInt());
        configs.put("heartbeat.interval.ms", settings.get("heartbeat_interval_ms").asInt());
        configs.put("isolation.level", settings.get("read_committed").asBoolean() ? "read_committed" : "read_uncommitted");
        configs.put("request.timeout.ms", 60_000);
        configs.put("default.api.timeout.ms", 60_000);
        configs.put("metadata.max.age.ms", 1_000);
        configs.put("reconnect.backoff.max.ms", 500);
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
    public Object call(String method, JsonNode arguments) {
        switch (method) {
            case "assign" -> assign(arguments.get("starts"));
            case "subscribe" -> {
                List<String> topics = new ArrayList<>();
                arguments.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics);
            }
            case "subscribe_pattern" -> consumer.subscribe(Pattern.compile(arguments.get("pattern").asText()));
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
        if (method.equals("assignment")) {
            List<Object> owned = new ArrayList<>();
            consumer.assignment().forEach(where -> owned.add(List.of(where.topic(), where.partition())));
            return owned;
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

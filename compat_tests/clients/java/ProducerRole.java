import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** KafkaProducer. */
class ProducerRole implements Driver.Role {
    private final KafkaProducer<byte[], byte[]> producer;
    private List<Future<RecordMetadata>> sent = new ArrayList<>();

    ProducerRole(String bootstrap, Map<String, Object> wayIn, JsonNode settings) {
        int deliveryTimeoutMs = settings.get("delivery_timeout_ms").asInt();
        String transactionalId = Driver.text(settings.get("transactional_id"));
        Map<String, Object> configs = new HashMap<>(wayIn);
        configs.put("bootstrap.servers", bootstrap);
        configs.put("acks", settings.get("acks").asText());
        configs.put("compression.type", settings.get("compression").asText());
        configs.put("enable.idempotence", settings.get("idempotent").asBoolean() || transactionalId != null);
        configs.put("linger.ms", settings.get("linger_ms").asInt());
        configs.put("max.request.size", settings.get("max_request_size").asInt());
        configs.put("delivery.timeout.ms", deliveryTimeoutMs);
        configs.put("request.timeout.ms", Math.min(settings.get("request_timeout_ms").asInt(), deliveryTimeoutMs / 2));
        configs.put("max.block.ms", 60_000);
        configs.put("reconnect.backoff.max.ms", 500);
        if (transactionalId != null) {
            configs.put("transactional.id", transactionalId);
            configs.put("transaction.timeout.ms", settings.get("transaction_timeout_ms").asInt());
        }
        producer = new KafkaProducer<>(configs, new ByteArraySerializer(), new ByteArraySerializer());
        if (transactionalId != null) {
            try {
                producer.initTransactions();
            } catch (RuntimeException error) {
                // This producer is not returned; left alone it would go on trying, and fence its successor.
                producer.close(Duration.ZERO);
                throw error;
            }
        }
    }

    @Override
    public Object call(String method, JsonNode arguments) throws Exception {
        switch (method) {
            case "send" -> send(arguments);
            case "flush" -> {
                return flush();
            }
            case "begin" -> producer.beginTransaction();
            case "commit" -> {
                producer.commitTransaction();
                sent.clear();
            }
            case "abort" -> {
                producer.abortTransaction();
                sent.clear();
            }
            case "close" -> producer.close(Duration.ofSeconds(5));
            default -> throw new IllegalArgumentException(method);
        }
        return null;
    }

    private void send(JsonNode record) throws Exception {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), Driver.bytes(header.get(1))));
        }
        JsonNode partition = record.get("partition");
        JsonNode timestampMs = record.get("timestamp_ms");
        sent.add(producer.send(new ProducerRecord<>(
                record.get("topic").asText(),
                partition.isNull() ? null : partition.asInt(),
                timestampMs.isNull() ? null : timestampMs.asLong(),
                Driver.bytes(record.get("key")),
                Driver.bytes(record.get("value")),
                headers)));
    }

    private List<Object> flush() throws Exception {
        List<Future<RecordMetadata>> futures = sent;
        sent = new ArrayList<>();
        producer.flush();
        List<Object> deliveries = new ArrayList<>();
        for (Future<RecordMetadata> future : futures) {
            RecordMetadata delivery = future.get(60, TimeUnit.SECONDS);
            deliveries.add(List.of(delivery.topic(), delivery.partition(), delivery.offset()));
        }
        return deliveries;
    }

    void sendOffsets(JsonNode wanted, ConsumerGroupMetadata group) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode each : wanted) {
            offsets.put(Driver.partition(each), new OffsetAndMetadata(each.get(2).asLong()));
        }
        producer.sendOffsetsToTransaction(offsets, group);
    }
}

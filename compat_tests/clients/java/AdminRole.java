import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DeleteRecordsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** Admin. It is compiled against kafka-clients 3.9, the last that has alterConfigs. */
class AdminRole implements Driver.Role {
    private final Admin admin;

    AdminRole(String bootstrap, Map<String, Object> wayIn) {
        Map<String, Object> configs = new HashMap<>(wayIn);
        configs.put("bootstrap.servers", bootstrap);
        configs.put("request.timeout.ms", 20_000);
        configs.put("default.api.timeout.ms", 20_000);
        configs.put("reconnect.backoff.max.ms", 500);
        admin = Admin.create(configs);
    }

    @Override
    public Object call(String method, JsonNode arguments) throws Exception {
        return switch (method) {
            case "create_topic" -> createTopic(arguments);
            case "delete_topic" -> admin.deleteTopics(List.of(name(arguments))).all().get();
            case "list_topics" -> admin.listTopics().names().get();
            case "describe_topic" -> describeTopic(name(arguments));
            case "create_partitions" -> {
                NewPartitions total = NewPartitions.increaseTo(arguments.get("total").asInt());
                yield admin.createPartitions(Map.of(name(arguments), total)).all().get();
            }
            case "describe_configs" -> describeConfigs(arguments);
            case "alter_configs" -> alterConfigs(arguments);
            case "incremental_alter_configs" -> incrementalAlterConfigs(arguments);
            case "describe_cluster" -> describeCluster();
            case "describe_log_dirs" -> describeLogDirs(name(arguments));
            case "delete_records" -> deleteRecords(arguments);
            case "list_offset" -> listOffset(arguments);
            case "close" -> {
                admin.close();
                yield null;
            }
            default -> group(method, arguments);
        };
    }

    private Object group(String method, JsonNode arguments) throws Exception {
        switch (method) {
            case "list_groups":
                return admin.listConsumerGroups().all().get().stream().map(group -> group.groupId()).toList();
            case "describe_group":
                return describeGroup(name(arguments));
            case "delete_group":
                return admin.deleteConsumerGroups(List.of(name(arguments))).all().get();
            case "group_offsets":
                List<Object> found = new ArrayList<>();
                admin.listConsumerGroupOffsets(name(arguments)).partitionsToOffsetAndMetadata().get().forEach(
                        (where, at) -> found.add(List.of(where.topic(), where.partition(), at.offset(), at.metadata())));
                return found;
            case "alter_group_offsets":
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (JsonNode each : arguments.get("offsets")) {
                    OffsetAndMetadata at = new OffsetAndMetadata(each.get(2).asLong(), each.get(3).asText());
                    offsets.put(Driver.partition(each), at);
                }
                return admin.alterConsumerGroupOffsets(name(arguments), offsets).all().get();
            default:
                throw new IllegalArgumentException(method);
        }
    }

    private static String name(JsonNode arguments) {
        return arguments.get("name").asText();
    }

    private Object createTopic(JsonNode arguments) throws Exception {
        Map<String, String> configs = new HashMap<>();
        arguments.get("configs").fields().forEachRemaining(each -> configs.put(each.getKey(), each.getValue().asText()));
        int partitions = arguments.get("partitions").asInt();
        short replicas = (short) arguments.get("replication_factor").asInt();
        NewTopic topic = new NewTopic(name(arguments), partitions, replicas).configs(configs);
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(arguments.get("validate_only").asBoolean());
        return admin.createTopics(List.of(topic), options).all().get();
    }

    private Object describeTopic(String name) throws Exception {
        List<Object> leaders = new ArrayList<>();
        for (TopicPartitionInfo part : admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions()) {
            leaders.add(List.of(part.partition(), part.leader() == null ? -1 : part.leader().id()));
        }
        return leaders;
    }

    private Object describeConfigs(JsonNode arguments) throws Exception {
        String kind = arguments.get("kind").asText().toUpperCase(java.util.Locale.ROOT);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(kind), name(arguments));
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true);
        Map<String, Object> described = new HashMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
            List<Object> synonyms = new ArrayList<>();
            for (ConfigEntry.ConfigSynonym each : entry.synonyms()) {
                synonyms.add(Arrays.asList(each.name(), each.value(), each.source().name()));
            }
            described.put(entry.name(), Arrays.asList(entry.value(), entry.source().name(), entry.isReadOnly(),
                    entry.isSensitive(), synonyms));
        }
        return described;
    }

    @SuppressWarnings("deprecation") // it is deprecated, and in use
    private Object alterConfigs(JsonNode arguments) throws Exception {
        List<ConfigEntry> entries = new ArrayList<>();
        arguments.get("configs").fields().forEachRemaining(
                each -> entries.add(new ConfigEntry(each.getKey(), each.getValue().asText())));
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name(arguments));
        return admin.alterConfigs(Map.of(topic, new Config(entries))).all().get();
    }

    private Object incrementalAlterConfigs(JsonNode arguments) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        for (JsonNode each : arguments.get("changes")) {
            String operation = each.get(0).asText().toUpperCase(java.util.Locale.ROOT);
            ConfigEntry entry = new ConfigEntry(each.get(1).asText(), Driver.text(each.get(2)));
            changes.add(new AlterConfigOp(entry, AlterConfigOp.OpType.valueOf(operation)));
        }
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name(arguments));
        return admin.incrementalAlterConfigs(Map.of(topic, changes)).all().get();
    }

    private Object describeGroup(String name) throws Exception {
        ConsumerGroupDescription group = admin.describeConsumerGroups(List.of(name)).all().get().get(name);
        Map<String, Object> members = new HashMap<>();
        group.members().forEach(member -> members.put(member.consumerId(), member.assignment().topicPartitions().stream()
                .map(where -> List.of(where.topic(), where.partition())).toList()));
        return List.of(group.state().toString(), members);
    }

    private Object deleteRecords(JsonNode arguments) throws Exception {
        TopicPartition where = Driver.partition(arguments.get("where"));
        RecordsToDelete before = RecordsToDelete.beforeOffset(arguments.get("before_offset").asLong());
        // The client asks again and again for a partition that isn't there.
        DeleteRecordsOptions options = new DeleteRecordsOptions().timeoutMs(1_000);
        return admin.deleteRecords(Map.of(where, before), options).lowWatermarks().get(where).get().lowWatermark();
    }

    private Object listOffset(JsonNode arguments) throws Exception {
        TopicPartition where = Driver.partition(arguments.get("where"));
        long spec = arguments.get("spec").asLong();
        OffsetSpec wanted = spec == -1 ? OffsetSpec.latest()
                : spec == -2 ? OffsetSpec.earliest()
                : spec == -3 ? OffsetSpec.maxTimestamp()
                : OffsetSpec.forTimestamp(spec);
        return admin.listOffsets(Map.of(where, wanted)).partitionResult(where).get().offset();
    }

    private Object describeCluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        List<Object> brokers = new ArrayList<>();
        cluster.nodes().get().forEach(node -> brokers.add(List.of(node.id(), node.host(), node.port())));
        int controllerId = Optional.ofNullable(cluster.controller().get()).map(Node::id).orElse(-1);
        return Arrays.asList(cluster.clusterId().get(), controllerId, brokers);
    }

    private Object describeLogDirs(String topic) throws Exception {
        Set<Integer> brokers = new java.util.HashSet<>();
        admin.describeCluster().nodes().get().forEach(node -> brokers.add(node.id()));
        List<Object> sizes = new ArrayList<>();
        admin.describeLogDirs(brokers).allDescriptions().get().values().forEach(folders -> folders.values().forEach(
                folder -> folder.replicaInfos().forEach((where, replica) -> {
                    if (where.topic().equals(topic)) {
                        sizes.add(List.of(where.partition(), replica.size()));
                    }
                })));
        return sizes;
    }
}

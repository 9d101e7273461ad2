import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.FencedMemberEpochException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder;
import org.slf4j.LoggerFactory;

/**
 * Prints the step of a member of a consumer group as Apache Kafka takes it, for each line of the input: the record of the
 * member's current assignment and that of its target as hexadecimal values of version 0 without their prefix, the epoch of the
 * target, the numbers of the topics that it reads, "true" if these have just changed, the partitions that others have
 * ("topic:partition:epoch"), and the client's own ones ("topic:partition", or "null"). Topic n has the id (n, n).
 * Output: the record afterwards, or "fenced".
 */
public class CurrentAssignments {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(step(line.split("\t", -1)));
        }
    }

    private static String step(String[] words) {
        ConsumerGroupMember member = new ConsumerGroupMember.Builder("A")
            .setSubscribedTopicNames(items(words[3]))
            .updateWith(LoggerFactory.getLogger("steps"), "g",
                new ConsumerGroupCurrentMemberAssignmentValue(bytes(words[0]), (short) 0))
            .build();
        Map<Uuid, Map<Integer, Integer>> owners = new HashMap<>();
        member.assignedPartitions().forEach((topic, partitions) -> partitions.keySet().forEach(partition ->
            owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, member.memberEpoch())));
        member.partitionsPendingRevocation().forEach((topic, partitions) -> partitions.keySet().forEach(partition ->
            owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, member.memberEpoch())));
        for (String item : items(words[5])) {
            String[] parts = item.split(":");
            owners.computeIfAbsent(id(parts[0]), __ -> new HashMap<>())
                .put(Integer.parseInt(parts[1]), Integer.parseInt(parts[2]));
        }
        try {
            ConsumerGroupMember next = new CurrentAssignmentBuilder(member)
                .withMetadataImage(new Topics())
                .withTargetAssignment(Integer.parseInt(words[2]),
                    Assignment.fromRecord(new ConsumerGroupTargetAssignmentMemberValue(bytes(words[1]), (short) 0)))
                .withHasSubscriptionChanged(Boolean.parseBoolean(words[4]))
                .withCurrentPartitionEpoch((topic, partition) ->
                    owners.getOrDefault(topic, Map.of()).getOrDefault(partition, -1))
                .withOwnedTopicPartitions(owned(words[6]))
                .build();
            var record = GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g", next);
            ByteBuffer value = MessageUtil.toByteBufferAccessor(record.value().message(), (short) 0).buffer();
            byte[] written = new byte[value.remaining()];
            value.get(written);
            return HexFormat.of().formatHex(written);
        } catch (FencedMemberEpochException fenced) {
            return "fenced";
        }
    }

    private static List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned(String word) {
        if (word.equals("null")) {
            return null;
        }
        Map<Uuid, List<Integer>> topics = new HashMap<>();
        for (String item : items(word)) {
            String[] parts = item.split(":");
            topics.computeIfAbsent(id(parts[0]), __ -> new ArrayList<>()).add(Integer.parseInt(parts[1]));
        }
        List<ConsumerGroupHeartbeatRequestData.TopicPartitions> found = new ArrayList<>();
        topics.forEach((topic, partitions) -> found.add(
            new ConsumerGroupHeartbeatRequestData.TopicPartitions().setTopicId(topic).setPartitions(partitions)));
        return found;
    }

    private static List<String> items(String word) {
        return word.isEmpty() ? List.of() : Arrays.asList(word.split(","));
    }

    private static Uuid id(String topic) {
        return new Uuid(Long.parseLong(topic), Long.parseLong(topic));
    }

    private static ByteBufferAccessor bytes(String word) {
        return new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(word)));
    }

    private record Topic(String name, Uuid id) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return 100;
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return List.of();
        }
    }

    private static class Topics implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Set<String> topicNames() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.of(new Topic(name, CurrentAssignments.id(name)));
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.of(new Topic(Long.toString(id.getMostSignificantBits()), id));
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public boolean isEmpty() {
            return false;
        }
    }
}

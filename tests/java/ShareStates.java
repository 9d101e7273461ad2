import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Prints what a shard of Apache Kafka's share coordinator does with each line of the input, a request for one partition of topic
 * AAECAwQFBgcICQoLDA0ODw and group "g", with tabs between its words:
 *   limit N                           another shard, with share.coordinator.snapshot.update.records.per.snapshot N
 *   initialize PARTITION STATE_EPOCH START
 *   read PARTITION LEADER_EPOCH
 *   write PARTITION STATE_EPOCH LEADER_EPOCH START COUNT FIRST:LAST:STATE:COUNT,...
 *   delete PARTITION
 *   summary PARTITION
 *   cold MS                           snapshots of idle share partitions, so many milliseconds later
 * Output: the error code and what else the response has, then the records as hexadecimal keys and values, in their order as text.
 */
public class ShareStates {
    private static final Uuid TOPIC = Uuid.fromString("AAECAwQFBgcICQoLDA0ODw");
    private static final Clock CLOCK = new Clock();
    private static ShareCoordinatorShard shard;
    private static long offset;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split("\t", -1)));
        }
    }

    private static String answer(String[] words) {
        switch (words[0]) {
            case "limit":
                shard = shard(Integer.parseInt(words[1]));
                offset = 0;
                return "";
            case "cold":
                CLOCK.now += Long.parseLong(words[1]);
                return "" + replayed(shard.snapshotColdPartitions().records());
            case "initialize": {
                var result = shard.initializeState(new InitializeShareGroupStateRequestData().setGroupId("g").setTopics(List.of(
                    new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(TOPIC).setPartitions(List.of(
                        new InitializeShareGroupStateRequestData.PartitionData().setPartition(number(words[1]))
                            .setStateEpoch(number(words[2])).setStartOffset(number(words[3])))))));
                var partition = result.response().results().get(0).partitions().get(0);
                return partition.errorCode() + replayed(result.records());
            }
            case "read": {
                var result = shard.readStateAndMaybeUpdateLeaderEpoch(new ReadShareGroupStateRequestData().setGroupId("g").setTopics(
                    List.of(new ReadShareGroupStateRequestData.ReadStateData().setTopicId(TOPIC).setPartitions(List.of(
                        new ReadShareGroupStateRequestData.PartitionData().setPartition(number(words[1]))
                            .setLeaderEpoch(number(words[2])))))));
                var partition = result.response().results().get(0).partitions().get(0);
                List<String> batches = partition.stateBatches().stream().map(batch -> batch.firstOffset() + ":" + batch.lastOffset()
                    + ":" + batch.deliveryState() + ":" + batch.deliveryCount()).toList();
                return partition.errorCode() + " " + partition.stateEpoch() + " " + partition.startOffset() + " "
                    + String.join(",", batches) + replayed(result.records());
            }
            case "write": {
                List<WriteShareGroupStateRequestData.StateBatch> batches = new ArrayList<>();
                for (String word : words[6].isEmpty() ? new String[0] : words[6].split(",")) {
                    String[] parts = word.split(":");
                    batches.add(new WriteShareGroupStateRequestData.StateBatch().setFirstOffset(number(parts[0]))
                        .setLastOffset(number(parts[1])).setDeliveryState((byte) number(parts[2]))
                        .setDeliveryCount((short) number(parts[3])));
                }
                var result = shard.writeState(new WriteShareGroupStateRequestData().setGroupId("g").setTopics(List.of(
                    new WriteShareGroupStateRequestData.WriteStateData().setTopicId(TOPIC).setPartitions(List.of(
                        new WriteShareGroupStateRequestData.PartitionData().setPartition(number(words[1]))
                            .setStateEpoch(number(words[2])).setLeaderEpoch(number(words[3])).setStartOffset(number(words[4]))
                            .setDeliveryCompleteCount(number(words[5])).setStateBatches(batches))))));
                var partition = result.response().results().get(0).partitions().get(0);
                return partition.errorCode() + replayed(result.records());
            }
            case "delete": {
                var result = shard.deleteState(new DeleteShareGroupStateRequestData().setGroupId("g").setTopics(List.of(
                    new DeleteShareGroupStateRequestData.DeleteStateData().setTopicId(TOPIC).setPartitions(List.of(
                        new DeleteShareGroupStateRequestData.PartitionData().setPartition(number(words[1])))))));
                var partition = result.response().results().get(0).partitions().get(0);
                return partition.errorCode() + replayed(result.records());
            }
            default: {
                var result = shard.readStateSummary(new ReadShareGroupStateSummaryRequestData().setGroupId("g").setTopics(List.of(
                    new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData().setTopicId(TOPIC).setPartitions(List.of(
                        new ReadShareGroupStateSummaryRequestData.PartitionData().setPartition(number(words[1])))))));
                var partition = result.response().results().get(0).partitions().get(0);
                return partition.errorCode() + " " + partition.stateEpoch() + " " + partition.leaderEpoch() + " "
                    + partition.startOffset() + " " + partition.deliveryCompleteCount() + replayed(result.records());
            }
        }
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static String replayed(List<CoordinatorRecord> records) {
        ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
        List<String> texts = new ArrayList<>();
        for (CoordinatorRecord record : records) {
            shard.replay(offset++, -1, (short) -1, record);
            byte[] value = serde.serializeValue(record);
            texts.add(" " + HexFormat.of().formatHex(serde.serializeKey(record)) + "="
                + (value == null ? "" : HexFormat.of().formatHex(value)));
        }
        texts.sort(null);
        return String.join("", texts);
    }

    private static ShareCoordinatorShard shard(int limit) {
        Map<String, Object> configs = Map.of(ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG, limit);
        ShareCoordinatorConfig config =
            new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, configs, false));
        var made = new ShareCoordinatorShard.Builder(config)
            .withLogContext(new LogContext())
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext()))
            .withCoordinatorMetrics(new ShareCoordinatorMetrics(new Metrics()))
            .withTopicPartition(new TopicPartition("__share_group_state", 0))
            .withTime(CLOCK)
            .build();
        made.onLoaded(new Topics());
        return made;
    }

    private static class Clock implements Time {
        private long now = 1_700_000_000_000L;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private record Topic(String name, Uuid id) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return 3;
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
            throw new UnsupportedOperationException();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.of(new Topic("t", id));
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

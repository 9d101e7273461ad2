import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Prints the target assignment of Apache Kafka's own assignors, for each line of the input. It has the assignor, "homogeneous" or
 * "heterogeneous", the topics ("id:partitions,..."), and then three words for each member: its id and instance id ("id:instance"),
 * the ids of its topics, and its old target ("id:partition:partition ..."). Members and topics are gone through as they stand there.
 * Output: for each member with partitions "id=" and its target in the same form, sorted. Ids are hexadecimal, "high.low".
 */
public class Assignments {
    private static final Map<String, PartitionAssignor> ASSIGNORS =
        Map.of("range", new RangeAssignor(), "simple", new SimpleAssignor(), "uniform", new UniformAssignor());

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(assignment(line.split("\t", -1)));
        }
    }

    private static String assignment(String[] words) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String item : items(words[2], ",")) {
            String[] parts = item.split(":");
            counts.put(id(parts[0]), Integer.parseInt(parts[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int at = 3; at < words.length; at += 3) {
            String[] name = words[at].split(":", -1);
            Set<Uuid> topics = new LinkedHashSet<>();
            items(words[at + 1], ",").forEach(topic -> topics.add(id(topic)));
            Map<Uuid, Set<Integer>> target = new LinkedHashMap<>();
            for (String item : items(words[at + 2], " ")) {
                String[] parts = item.split(":");
                for (int i = 1; i < parts.length; i++) {
                    int partition = Integer.parseInt(parts[i]);
                    target.computeIfAbsent(id(parts[0]), __ -> new LinkedHashSet<>()).add(partition);
                    owners.computeIfAbsent(id(parts[0]), __ -> new HashMap<>()).put(partition, name[0]);
                }
            }
            Optional<String> instance = name[1].isEmpty() ? Optional.empty() : Optional.of(name[1]);
            members.put(name[0], new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instance, topics,
                new Assignment(Collections.unmodifiableMap(target))));
        }
        SubscriptionType type = SubscriptionType.valueOf(words[1].toUpperCase());
        GroupAssignment found = ASSIGNORS.get(words[0]).assign(new GroupSpecImpl(members, type, owners), new Counts(counts));
        return members.keySet().stream()
            .filter(member -> found.members().containsKey(member) && !found.members().get(member).partitions().isEmpty())
            .map(member -> member + "=" + written(found.members().get(member).partitions()))
            .collect(Collectors.joining("\t"));
    }

    private static String written(Map<Uuid, Set<Integer>> partitions) {
        return partitions.entrySet().stream()
            .map(entry -> written(entry.getKey()) + ":" + new TreeSet<>(entry.getValue()).stream()
                .map(String::valueOf).collect(Collectors.joining(":")))
            .sorted()
            .collect(Collectors.joining(" "));
    }

    private static List<String> items(String word, String separator) {
        return word.isEmpty() ? List.of() : Arrays.asList(word.split(separator));
    }

    private static Uuid id(String topic) {
        String[] halves = topic.split("\\.");
        return new Uuid(Long.parseUnsignedLong(halves[0], 16), Long.parseUnsignedLong(halves[1], 16));
    }

    private static String written(Uuid topic) {
        return String.format("%016x.%016x", topic.getMostSignificantBits(), topic.getLeastSignificantBits());
    }

    private record Counts(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topic) {
            return counts.getOrDefault(topic, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}

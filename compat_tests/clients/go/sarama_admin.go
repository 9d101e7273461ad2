package main

// sarama's ClusterAdmin.

import (
	"errors"
	"net"
	"strconv"

	"github.com/IBM/sarama"
)

type saramaAdmin struct{ sarama.ClusterAdmin }

func (s saramaLibrary) admin() (admin, error) {
	made, err := sarama.NewClusterAdmin([]string{s.bootstrap}, s.config())
	return saramaAdmin{made}, err
}

// saramaFailure is nil for Kafka's code 0, which is an error value to the library.
func saramaFailure(code sarama.KError) error {
	if code == sarama.ErrNoError {
		return nil
	}
	return code
}

func (a saramaAdmin) createTopic(topic newTopic) error {
	configs := map[string]*string{}
	for name, value := range topic.Configs {
		configs[name] = &value
	}
	detail := &sarama.TopicDetail{
		NumPartitions: int32(topic.Partitions), ReplicationFactor: int16(topic.ReplicationFactor), ConfigEntries: configs,
	}
	return a.CreateTopic(topic.Name, detail, topic.ValidateOnly)
}

func (a saramaAdmin) deleteTopic(name string) error { return a.DeleteTopic(name) }

func (a saramaAdmin) listTopics() ([]string, error) {
	topics, err := a.ListTopics()
	var names []string
	for name := range topics {
		names = append(names, name)
	}
	return names, err
}

func (a saramaAdmin) describeTopic(name string) (map[int32]int32, error) {
	topics, err := a.DescribeTopics([]string{name})
	if err == nil {
		err = saramaFailure(topics[0].Err)
	}
	if err != nil {
		return nil, err
	}
	leaders := map[int32]int32{}
	for _, each := range topics[0].Partitions {
		leaders[each.ID] = each.Leader
	}
	return leaders, nil
}

func (a saramaAdmin) createPartitions(name string, total int) error {
	return a.CreatePartitions(name, int32(total), nil, false)
}

func (a saramaAdmin) describeConfigs(kind, name string) (map[string]configEntry, error) {
	resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: name}
	if kind == "broker" {
		resource.Type = sarama.BrokerResource
	}
	options := sarama.DescribeConfigsOptions{IncludeSynonyms: true}
	results, err := a.DescribeConfigs([]*sarama.ConfigResource{resource}, options)
	if err == nil {
		err = saramaFailure(results[0].ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	described := map[string]configEntry{}
	for _, each := range results[0].Configs {
		entry := configEntry{
			value: &each.Value, source: sources[int8(each.Source)], readOnly: each.ReadOnly, sensitive: each.Sensitive,
		}
		for _, other := range each.Synonyms {
			entry.synonyms = append(entry.synonyms, synonym{other.ConfigName, &other.ConfigValue, sources[int8(other.Source)]})
		}
		described[each.Name] = entry
	}
	return described, nil
}

func (a saramaAdmin) alterConfigs(topic string, configs map[string]string) error {
	entries := map[string]*string{}
	for name, value := range configs {
		entries[name] = &value
	}
	return a.AlterConfig(sarama.TopicResource, topic, entries, false)
}

func (a saramaAdmin) incrementalAlterConfigs(topic string, changes []configChange) error {
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for _, each := range changes {
		operation := sarama.IncrementalAlterConfigsOperation(each.operation)
		entries[each.name] = sarama.IncrementalAlterConfigsEntry{Operation: operation, Value: each.value}
	}
	return a.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
}

func (a saramaAdmin) listGroups() ([]string, error) {
	groups, err := a.ListConsumerGroups()
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	return names, err
}

func (a saramaAdmin) describeGroup(name string) (groupDescription, error) {
	groups, err := a.DescribeConsumerGroups([]string{name})
	if err == nil {
		err = saramaFailure(groups[0].Err)
	}
	if err != nil {
		return groupDescription{}, err
	}
	members := map[string][]partition{}
	for id, member := range groups[0].Members {
		assigned, err := member.GetMemberAssignment()
		if err != nil {
			return groupDescription{}, err
		}
		owned := []partition{}
		if assigned != nil {
			for topic, numbers := range assigned.Topics {
				for _, number := range numbers {
					owned = append(owned, partition{topic, number})
				}
			}
		}
		members[id] = owned
	}
	return groupDescription{groups[0].State, members}, nil
}

func (a saramaAdmin) deleteGroup(name string) error { return a.DeleteConsumerGroup(name) }

func (a saramaAdmin) groupOffsets(name string) ([]offset, error) { return a.offsetsOf(name, nil) }

// offsetsOf are those of some partitions, nil for all; what has no offset is left out.
func (a saramaAdmin) offsetsOf(group string, partitions map[string][]int32) ([]offset, error) {
	groups, err := a.ListConsumerGroupOffsetsBatch(map[string]map[string][]int32{group: partitions})
	if err == nil {
		err = saramaFailure(groups[group].Err)
	}
	if err != nil {
		return nil, err
	}
	var offsets []offset
	for topic, blocks := range groups[group].Blocks {
		for number, block := range blocks {
			if err := saramaFailure(block.Err); err != nil {
				return nil, err
			}
			if block.Offset >= 0 {
				offsets = append(offsets, offset{partition{topic, number}, committed{block.Offset, block.Metadata}})
			}
		}
	}
	return offsets, nil
}

func (a saramaAdmin) alterGroupOffsets(name string, offsets []offset) error {
	wanted := map[string]map[int32]sarama.OffsetAndMetadata{}
	for _, each := range offsets {
		if wanted[each.topic] == nil {
			wanted[each.topic] = map[int32]sarama.OffsetAndMetadata{}
		}
		at := sarama.OffsetAndMetadata{Offset: each.offset, Metadata: each.metadata, LeaderEpoch: -1}
		wanted[each.topic][each.number] = at
	}
	response, err := a.AlterConsumerGroupOffsets(name, wanted, nil)
	if err != nil {
		return err
	}
	for _, numbers := range response.Errors {
		for _, code := range numbers {
			if err := saramaFailure(code); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteRecords asks for the new first offset: the library doesn't tell what the answer says of it.
func (a saramaAdmin) deleteRecords(where partition, before int64) (int64, error) {
	if err := a.DeleteRecords(where.topic, map[int32]int64{where.number: before}); err != nil {
		return 0, err
	}
	return a.listOffset(where, sarama.OffsetOldest)
}

func (a saramaAdmin) listOffset(where partition, spec int64) (int64, error) {
	wanted := map[string]map[int32]int64{where.topic: {where.number: spec}}
	found, err := a.ListOffsets(wanted, nil)
	if err != nil {
		return 0, err
	}
	result := found[where.topic][where.number]
	if !errors.Is(result.Err, sarama.ErrNoError) {
		return 0, result.Err
	}
	return result.Offset, nil
}

func (a saramaAdmin) describeCluster() (clusterDescription, error) {
	brokers, controller, err := a.DescribeCluster()
	if err != nil {
		return clusterDescription{}, err
	}
	cluster := clusterDescription{controller: controller}
	for _, each := range brokers {
		host, port, err := net.SplitHostPort(each.Addr())
		if err != nil {
			return clusterDescription{}, err
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return clusterDescription{}, err
		}
		cluster.brokers = append(cluster.brokers, node{each.ID(), host, int32(number)})
	}
	return cluster, nil
}

func (a saramaAdmin) describeLogDirs(topic string) (map[int32]int64, error) {
	cluster, err := a.describeCluster()
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, each := range cluster.brokers {
		ids = append(ids, each.id)
	}
	folders, err := a.DescribeLogDirs(ids)
	if err != nil {
		return nil, err
	}
	sizes := map[int32]int64{}
	for _, ofBroker := range folders {
		for _, folder := range ofBroker {
			for _, each := range folder.Topics {
				for _, part := range each.Partitions {
					if each.Topic == topic {
						sizes[part.PartitionID] = part.Size
					}
				}
			}
		}
	}
	return sizes, nil
}

func (a saramaAdmin) close() error { return a.Close() }

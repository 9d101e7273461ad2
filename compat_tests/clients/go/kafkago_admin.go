package main

// kafka-go's Client: a call to each kind of request.

import (
	"context"
	"errors"

	"github.com/segmentio/kafka-go"
)

type kafkaGoAdmin struct{ *kafka.Client }

func (k kafkaGoLibrary) admin() (admin, error) { return kafkaGoAdmin{k.client("")}, nil }

var errKafkaGoLacks = errors.New("kafka-go has no such call")

// kafkaGoFirst is the failure of a request, or one of those in its answer.
func kafkaGoFirst[K comparable](err error, failures func() map[K]error) error {
	if err != nil {
		return err
	}
	for _, failed := range failures() {
		if failed != nil {
			return failed
		}
	}
	return nil
}

func (a kafkaGoAdmin) createTopic(topic newTopic) error {
	config := kafka.TopicConfig{
		Topic: topic.Name, NumPartitions: topic.Partitions, ReplicationFactor: topic.ReplicationFactor,
	}
	for name, value := range topic.Configs {
		config.ConfigEntries = append(config.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	request := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}, ValidateOnly: topic.ValidateOnly}
	ctx, cancel := context.WithTimeout(context.Background(), kafkaGoTimeout)
	if topic.ValidateOnly {
		// The library waits until the topic is there, also when none was asked for.
		ctx, cancel = context.WithTimeout(context.Background(), kafkaGoTimeout/10)
	}
	defer cancel()
	response, err := a.CreateTopics(ctx, request)
	return kafkaGoFirst(err, func() map[string]error { return response.Errors })
}

func (a kafkaGoAdmin) deleteTopic(name string) error {
	response, err := a.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{name}})
	return kafkaGoFirst(err, func() map[string]error { return response.Errors })
}

func (a kafkaGoAdmin) listTopics() ([]string, error) {
	response, err := a.Metadata(context.Background(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, each := range response.Topics {
		names = append(names, each.Name)
	}
	return names, nil
}

func (a kafkaGoAdmin) describeTopic(name string) (map[int32]int32, error) {
	response, err := a.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{name}})
	if err == nil {
		err = response.Topics[0].Error
	}
	if err != nil {
		return nil, err
	}
	leaders := map[int32]int32{}
	for _, each := range response.Topics[0].Partitions {
		leaders[int32(each.ID)] = int32(each.Leader.ID)
	}
	return leaders, nil
}

func (a kafkaGoAdmin) createPartitions(name string, total int) error {
	request := &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(total)}}}
	response, err := a.CreatePartitions(context.Background(), request)
	return kafkaGoFirst(err, func() map[string]error { return response.Errors })
}

func (a kafkaGoAdmin) describeConfigs(kind, name string) (map[string]configEntry, error) {
	resource := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: name}
	if kind == "broker" {
		resource.ResourceType = kafka.ResourceTypeBroker
	}
	response, err := a.DescribeConfigs(context.Background(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{resource}, IncludeSynonyms: true,
	})
	if err == nil {
		err = response.Resources[0].Error
	}
	if err != nil {
		return nil, err
	}
	described := map[string]configEntry{}
	for _, each := range response.Resources[0].ConfigEntries {
		entry := configEntry{
			value: &each.ConfigValue, source: sources[each.ConfigSource], readOnly: each.ReadOnly, sensitive: each.IsSensitive,
		}
		for _, other := range each.ConfigSynonyms {
			entry.synonyms = append(entry.synonyms, synonym{other.ConfigName, &other.ConfigValue, sources[other.ConfigSource]})
		}
		described[each.ConfigName] = entry
	}
	return described, nil
}

func (a kafkaGoAdmin) alterConfigs(topic string, configs map[string]string) error {
	resource := kafka.AlterConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}
	for name, value := range configs {
		resource.Configs = append(resource.Configs, kafka.AlterConfigRequestConfig{Name: name, Value: value})
	}
	request := &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{resource}}
	response, err := a.AlterConfigs(context.Background(), request)
	return kafkaGoFirst(err, func() map[kafka.AlterConfigsResponseResource]error { return response.Errors })
}

func (a kafkaGoAdmin) incrementalAlterConfigs(topic string, changes []configChange) error {
	resource := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}
	for _, each := range changes {
		config := kafka.IncrementalAlterConfigsRequestConfig{
			Name: each.name, ConfigOperation: kafka.ConfigOperation(each.operation),
		}
		if each.value != nil {
			config.Value = *each.value
		}
		resource.Configs = append(resource.Configs, config)
	}
	request := &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{resource}}
	response, err := a.IncrementalAlterConfigs(context.Background(), request)
	if err != nil {
		return err
	}
	return response.Resources[0].Error
}

func (a kafkaGoAdmin) listGroups() ([]string, error) {
	response, err := a.ListGroups(context.Background(), &kafka.ListGroupsRequest{})
	if err == nil {
		err = response.Error
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, each := range response.Groups {
		names = append(names, each.GroupID)
	}
	return names, nil
}

func (a kafkaGoAdmin) describeGroup(name string) (groupDescription, error) {
	response, err := a.DescribeGroups(context.Background(), &kafka.DescribeGroupsRequest{GroupIDs: []string{name}})
	if err == nil {
		err = response.Groups[0].Error
	}
	if err != nil {
		return groupDescription{}, err
	}
	members := map[string][]partition{}
	for _, member := range response.Groups[0].Members {
		owned := []partition{}
		for _, topic := range member.MemberAssignments.Topics {
			for _, number := range topic.Partitions {
				owned = append(owned, partition{topic.Topic, int32(number)})
			}
		}
		members[member.MemberID] = owned
	}
	return groupDescription{response.Groups[0].GroupState, members}, nil
}

func (a kafkaGoAdmin) deleteGroup(name string) error {
	response, err := a.DeleteGroups(context.Background(), &kafka.DeleteGroupsRequest{GroupIDs: []string{name}})
	return kafkaGoFirst(err, func() map[string]error { return response.Errors })
}

func (a kafkaGoAdmin) groupOffsets(name string) ([]offset, error) { return a.offsetsOf(name, nil) }

// offsetsOf are those of some partitions, nil for all; what has no offset is left out.
func (a kafkaGoAdmin) offsetsOf(group string, partitions map[string][]int) ([]offset, error) {
	response, err := a.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: group, Topics: partitions})
	if err == nil {
		err = response.Error
	}
	if err != nil {
		return nil, err
	}
	var offsets []offset
	for topic, parts := range response.Topics {
		for _, part := range parts {
			if part.Error != nil {
				return nil, part.Error
			}
			if part.CommittedOffset >= 0 {
				where, at := partition{topic, int32(part.Partition)}, committed{part.CommittedOffset, part.Metadata}
				offsets = append(offsets, offset{where, at})
			}
		}
	}
	return offsets, nil
}

func (a kafkaGoAdmin) alterGroupOffsets(name string, offsets []offset) error {
	return a.commit(&kafka.OffsetCommitRequest{GroupID: name, GenerationID: -1}, offsets)
}

func (a kafkaGoAdmin) commit(request *kafka.OffsetCommitRequest, offsets []offset) error {
	request.Topics = map[string][]kafka.OffsetCommit{}
	for _, each := range offsets {
		at := kafka.OffsetCommit{Partition: int(each.number), Offset: each.offset, Metadata: each.metadata}
		request.Topics[each.topic] = append(request.Topics[each.topic], at)
	}
	response, err := a.OffsetCommit(context.Background(), request)
	if err != nil {
		return err
	}
	for _, parts := range response.Topics {
		for _, part := range parts {
			if part.Error != nil {
				return part.Error
			}
		}
	}
	return nil
}

func (a kafkaGoAdmin) deleteRecords(partition, int64) (int64, error) { return 0, errKafkaGoLacks }

func (a kafkaGoAdmin) listOffset(where partition, spec int64) (int64, error) {
	wanted := map[string][]kafka.OffsetRequest{where.topic: {{Partition: int(where.number), Timestamp: spec}}}
	response, err := a.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{Topics: wanted})
	if err != nil {
		return 0, err
	}
	found := response.Topics[where.topic][0]
	switch spec {
	case kafka.FirstOffset:
		return found.FirstOffset, found.Error
	case kafka.LastOffset:
		return found.LastOffset, found.Error
	}
	for at := range found.Offsets {
		return at, found.Error
	}
	return -1, found.Error
}

func (a kafkaGoAdmin) describeCluster() (clusterDescription, error) {
	response, err := a.Metadata(context.Background(), &kafka.MetadataRequest{})
	if err != nil {
		return clusterDescription{}, err
	}
	cluster := clusterDescription{id: &response.ClusterID, controller: int32(response.Controller.ID)}
	for _, each := range response.Brokers {
		cluster.brokers = append(cluster.brokers, node{int32(each.ID), each.Host, int32(each.Port)})
	}
	return cluster, nil
}

func (a kafkaGoAdmin) describeLogDirs(string) (map[int32]int64, error) { return nil, errKafkaGoLacks }

func (a kafkaGoAdmin) close() error {
	a.Transport.(*kafka.Transport).CloseIdleConnections()
	return nil
}

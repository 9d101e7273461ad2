package main

// franz-go's admin client, kadm.

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franzAdmin struct {
	client *kgo.Client
	*kadm.Client
}

func (f franz) admin() (admin, error) {
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	return franzAdmin{client, kadm.NewClient(client)}, nil
}

func franzContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), franzTimeout)
}

func (a franzAdmin) createTopic(topic newTopic) error {
	ctx, cancel := franzContext()
	defer cancel()
	create := a.CreateTopics
	if topic.ValidateOnly {
		create = a.ValidateCreateTopics
	}
	configs := map[string]*string{}
	for name, value := range topic.Configs {
		configs[name] = &value
	}
	created, err := create(ctx, int32(topic.Partitions), int16(topic.ReplicationFactor), configs, topic.Name)
	if err != nil {
		return err
	}
	return created.Error()
}

func (a franzAdmin) deleteTopic(name string) error {
	ctx, cancel := franzContext()
	defer cancel()
	_, err := a.DeleteTopic(ctx, name)
	return err
}

func (a franzAdmin) listTopics() ([]string, error) {
	ctx, cancel := franzContext()
	defer cancel()
	topics, err := a.ListTopics(ctx)
	return topics.Names(), err
}

func (a franzAdmin) describeTopic(name string) (map[int32]int32, error) {
	ctx, cancel := franzContext()
	defer cancel()
	topics, err := a.ListTopics(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := topics.Error(); err != nil {
		return nil, err
	}
	leaders := map[int32]int32{}
	for number, detail := range topics[name].Partitions {
		leaders[number] = detail.Leader
	}
	return leaders, nil
}

func (a franzAdmin) createPartitions(name string, total int) error {
	ctx, cancel := franzContext()
	defer cancel()
	made, err := a.UpdatePartitions(ctx, total, name)
	if err != nil {
		return err
	}
	return made.Error()
}

// describeConfigs makes the request by itself: kadm doesn't say which configs are read-only.
func (a franzAdmin) describeConfigs(kind, name string) (map[string]configEntry, error) {
	ctx, cancel := franzContext()
	defer cancel()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType = map[string]kmsg.ConfigResourceType{
		"topic": kmsg.ConfigResourceTypeTopic, "broker": kmsg.ConfigResourceTypeBroker,
	}[kind]
	resource.ResourceName = name
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Resources, request.IncludeSynonyms = []kmsg.DescribeConfigsRequestResource{resource}, true
	response, err := request.RequestWith(ctx, a.client)
	if err != nil {
		return nil, err
	}
	described := map[string]configEntry{}
	for _, resource := range response.Resources {
		if err := kerr.ErrorForCode(resource.ErrorCode); err != nil {
			return nil, err
		}
		for _, each := range resource.Configs {
			entry := configEntry{value: each.Value, source: sources[int8(each.Source)], readOnly: each.ReadOnly, sensitive: each.IsSensitive}
			for _, other := range each.ConfigSynonyms {
				entry.synonyms = append(entry.synonyms, synonym{other.Name, other.Value, sources[int8(other.Source)]})
			}
			described[each.Name] = entry
		}
	}
	return described, nil
}

func (a franzAdmin) alterConfigs(topic string, configs map[string]string) error {
	var entries []kadm.AlterConfig
	for name, value := range configs {
		entries = append(entries, kadm.AlterConfig{Name: name, Value: &value})
	}
	return franzAlter(a.AlterTopicConfigsState, topic, entries)
}

func (a franzAdmin) incrementalAlterConfigs(topic string, changes []configChange) error {
	var entries []kadm.AlterConfig
	for _, each := range changes {
		entries = append(entries, kadm.AlterConfig{Op: kadm.IncrementalOp(each.operation), Name: each.name, Value: each.value})
	}
	return franzAlter(a.AlterTopicConfigs, topic, entries)
}

func franzAlter(
	alter func(context.Context, []kadm.AlterConfig, ...string) (kadm.AlterConfigsResponses, error),
	topic string, entries []kadm.AlterConfig,
) error {
	ctx, cancel := franzContext()
	defer cancel()
	altered, err := alter(ctx, entries, topic)
	if err != nil {
		return err
	}
	_, err = altered.On(topic, func(each *kadm.AlterConfigsResponse) error { return each.Err })
	return err
}

func (a franzAdmin) listGroups() ([]string, error) {
	ctx, cancel := franzContext()
	defer cancel()
	groups, err := a.ListGroups(ctx)
	return groups.Groups(), err
}

func (a franzAdmin) describeGroup(name string) (groupDescription, error) {
	ctx, cancel := franzContext()
	defer cancel()
	if listed, err := a.ListGroupsByType(ctx, []string{"consumer"}); err == nil && slices.Contains(listed.Groups(), name) {
		return a.describeConsumerGroup(ctx, name)
	}
	described, err := a.DescribeGroups(ctx, name)
	if err == nil {
		err = described.Error()
	}
	if err != nil {
		return groupDescription{}, err
	}
	group := described[name]
	members := map[string][]partition{}
	for _, member := range group.Members {
		owned := []partition{}
		if assigned, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				for _, number := range topic.Partitions {
					owned = append(owned, partition{topic.Topic, number})
				}
			}
		}
		members[member.MemberID] = owned
	}
	return groupDescription{group.State, members}, nil
}

// describeConsumerGroup describes a group of the consumer protocol: kadm has a call of its own for these.
func (a franzAdmin) describeConsumerGroup(ctx context.Context, name string) (groupDescription, error) {
	described, err := a.DescribeConsumerGroups(ctx, name)
	if err == nil {
		err = described.Error()
	}
	if err != nil {
		return groupDescription{}, err
	}
	members := map[string][]partition{}
	for _, member := range described[name].Members {
		owned := []partition{}
		for topic, numbers := range member.Assignment {
			for number := range numbers {
				owned = append(owned, partition{topic, number})
			}
		}
		members[member.MemberID] = owned
	}
	return groupDescription{described[name].State, members}, nil
}

func (a franzAdmin) deleteGroup(name string) error {
	ctx, cancel := franzContext()
	defer cancel()
	_, err := a.DeleteGroup(ctx, name)
	return err
}

func (a franzAdmin) groupOffsets(name string) ([]offset, error) {
	ctx, cancel := franzContext()
	defer cancel()
	found, err := a.FetchOffsets(ctx, name)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, err
	}
	var offsets []offset
	for _, each := range found.Sorted() {
		offsets = append(offsets, offset{partition{each.Topic, each.Partition}, committed{each.At, each.Metadata}})
	}
	return offsets, nil
}

func (a franzAdmin) alterGroupOffsets(name string, offsets []offset) error {
	return franzCommit(a.Client, name, offsets)
}

// franzCommit commits without being a member of the group.
func franzCommit(client *kadm.Client, group string, offsets []offset) error {
	ctx, cancel := franzContext()
	defer cancel()
	wanted := kadm.Offsets{}
	for _, each := range offsets {
		wanted.Add(kadm.Offset{
			Topic: each.topic, Partition: each.number, At: each.offset, LeaderEpoch: -1, Metadata: each.metadata,
		})
	}
	return client.CommitAllOffsets(ctx, group, wanted)
}

func (a franzAdmin) deleteRecords(where partition, before int64) (int64, error) {
	ctx, cancel := franzContext()
	defer cancel()
	wanted := kadm.Offsets{}
	wanted.AddOffset(where.topic, where.number, before, -1)
	deleted, err := a.DeleteRecords(ctx, wanted)
	if err != nil {
		return 0, err
	}
	answer, err := deleted.On(where.topic, where.number, func(each *kadm.DeleteRecordsResponse) error { return each.Err })
	return answer.LowWatermark, err
}

func (a franzAdmin) listOffset(where partition, spec int64) (int64, error) {
	return franzListOffset(a.Client, where, spec)
}

// franzListOffset takes a timestamp or one of ListOffsets' negative numbers; -1 when there is no such offset.
func franzListOffset(client *kadm.Client, where partition, spec int64) (int64, error) {
	ctx, cancel := franzContext()
	defer cancel()
	var listed kadm.ListedOffsets
	var err error
	switch spec {
	case -1:
		listed, err = client.ListEndOffsets(ctx, where.topic)
	case -2:
		listed, err = client.ListStartOffsets(ctx, where.topic)
	case -3:
		listed, err = client.ListMaxTimestampOffsets(ctx, where.topic)
	default:
		listed, err = client.ListOffsetsAfterMilli(ctx, spec, where.topic)
	}
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return 0, err
	}
	found, _ := listed.Lookup(where.topic, where.number)
	if spec >= 0 && found.Timestamp < 0 {
		return -1, nil // kadm puts the end there
	}
	return found.Offset, nil
}

func (a franzAdmin) describeCluster() (clusterDescription, error) {
	ctx, cancel := franzContext()
	defer cancel()
	cluster, err := a.BrokerMetadata(ctx)
	if err != nil {
		return clusterDescription{}, err
	}
	var nodes []node
	for _, each := range cluster.Brokers {
		nodes = append(nodes, node{each.NodeID, each.Host, each.Port})
	}
	return clusterDescription{&cluster.Cluster, cluster.Controller, nodes}, nil
}

func (a franzAdmin) describeLogDirs(topic string) (map[int32]int64, error) {
	ctx, cancel := franzContext()
	defer cancel()
	described, err := a.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return nil, err
	}
	sizes := map[int32]int64{}
	described.Each(func(folder kadm.DescribedLogDir) {
		for number, each := range folder.Topics[topic] {
			sizes[number] = each.Size
		}
	})
	return sizes, nil
}

func (a franzAdmin) close() error {
	a.Close()
	return nil
}

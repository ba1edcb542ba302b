export { hashOf, type ShardHash } from './shard-hash.ts'
export { parseShardSelector, shardRange, type ShardField, type ShardSelector } from './shard-selector.ts'

export { startSyncer, type Syncer, type SyncerOptions } from './syncer.ts'
export { type SyncedMember } from './sync-context.ts'
export { createUpstream, type ClusterIds, type Upstream, type UpstreamOptions } from './upstream.ts'

// What the stages and endpoints work with: made once by createVirtualApi, then only read.
import type { Clock } from '../../async/index.ts'
import type { Hub } from '../../store/hub/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { AuditSink } from '../audit/index.ts'
import type { Authenticator } from '../authn/authenticator.ts'
import type { ServiceAccountTokens } from '../authn/service-account-tokens.ts'
import type { RbacAuthorizer } from '../authz/index.ts'
import type { ClusterDirectory } from '../clusters/directory.ts'
import type { HeavyThread } from '../heavy/heavy-thread.ts'
import type { PodConnector } from '../members/pod-connector.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { Registry } from '../registry/registry.ts'
import type { WatchClock } from '../endpoints/watch-clock.ts'
import type { Deliveries } from './deliveries.ts'
import type { Fairness } from './fairness.ts'
import type { LoopShare } from './loop-share.ts'
import type { ServerMetrics } from './server-metrics.ts'
import type { TokenReviewer } from '../registry/reviews/index.ts'

export interface ServerParts {
  readonly hub: Hub
  readonly directory: ClusterDirectory
  readonly registry: Registry
  readonly catalog: Catalog
  readonly authenticator: Authenticator
  readonly authorizer: RbacAuthorizer
  readonly fairness: Fairness
  readonly loopShare: LoopShare
  readonly deliveries: Deliveries
  /** Where large objects are worked on; undefined where that is already. */
  readonly heavy: HeavyThread | undefined
  readonly podConnector: PodConnector | undefined
  readonly tokenReviewer: TokenReviewer | undefined
  readonly accountTokens: ServiceAccountTokens
  readonly watchClock: WatchClock
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: ServerMetrics
  /** Where a line of every request is written; none where nobody asked for it. */
  readonly auditSink: AuditSink | undefined
  /** Of requests other than watches, log and exec. Milliseconds. */
  readonly requestTimeoutMs: number
  /** True once everything the server needs is there. The name of what is missing otherwise. */
  readonly notReady: () => string | undefined
}

// What the stages and endpoints depend on. Created once by createVirtualApi.
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
  /** The thread for expensive requests; undefined on that thread. */
  readonly heavy: HeavyThread | undefined
  readonly podConnector: PodConnector | undefined
  readonly tokenReviewer: TokenReviewer | undefined
  readonly accountTokens: ServiceAccountTokens
  readonly watchClock: WatchClock
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: ServerMetrics
  /** Takes the audit log; undefined if there is none. */
  readonly auditSink: AuditSink | undefined
  /** Timeout of requests other than watches, log and exec, milliseconds. */
  readonly requestTimeoutMs: number
  /** Why the server is not ready; undefined if it is. */
  readonly notReady: () => string | undefined
}

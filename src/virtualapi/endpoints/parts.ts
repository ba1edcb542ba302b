// What endpoints depend on. Created once per thread.
import type { Clock } from '../../async/index.ts'
import type { ClusterObjects, Hub } from '../../store/hub/index.ts'
import type { Metrics } from '../../telemetry/index.ts'
import type { ServiceAccountTokens } from '../authn/service-account-tokens.ts'
import type { TokenReviewer } from '../authn/token-reviewer.ts'
import type { RbacAuthorizer } from '../authz/index.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { ClusterDirectory, LogicalCluster } from '../clusters/directory.ts'
import type { ReadableForm } from '../codec/answers.ts'
import type { BytesAnswer, Exchange } from '../exchange/exchange.ts'
import type { Deliveries } from '../flowcontrol/deliveries.ts'
import type { PodConnector } from '../members/pod-connector.ts'
import type { Registry, RegistryTarget } from '../registry/registry.ts'
import type { WatchClock } from './watch-clock.ts'

/** What the verbs on one object need: all that the offload thread has. */
export interface ObjectParts {
  readonly hub: Pick<Hub, 'cluster'>
  readonly registry: Registry
  readonly catalog: Catalog
  readonly clock: Clock
}

/** What endpoints of the main thread need. */
export interface EndpointParts extends ObjectParts {
  readonly hub: Hub
  readonly directory: ClusterDirectory
  readonly authorizer: RbacAuthorizer
  readonly deliveries: Deliveries
  readonly offload: Offload
  readonly podConnector: PodConnector | undefined
  readonly tokenReviewer: TokenReviewer | undefined
  readonly accountTokens: ServiceAccountTokens
  readonly watchClock: WatchClock
  readonly metrics: Pick<Metrics, 'scrape'>
  /** Why the server is not ready; undefined if it is. */
  readonly notReady: () => string | undefined
}

/** The thread for large objects, as the main thread uses it. Both reject 429 where too much waits, 503 where it was lost. */
export interface Offload {
  /** What the endpoint of this call would answer. */
  answer(call: OffloadableCall): Promise<BytesAnswer>
  /** The answer in another form. */
  reformat(answer: BytesAnswer, form: ReadableForm, context: { readonly exchange: Exchange }): Promise<BytesAnswer>
}

/** What the offload thread is told of a call. */
export interface OffloadableCall {
  readonly exchange: Exchange
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly target: RegistryTarget
}

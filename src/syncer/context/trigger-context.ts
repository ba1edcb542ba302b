// What the triggers of a syncer need besides what every visit needs.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change, DeepReadonly, Informer } from '#client/index.ts'
import type { SyncContext, Visit } from './sync-context.ts'
import type { Views } from './views.ts'

export type ObjectChange = Change<KubeObject>

export interface TriggerContext extends SyncContext {
  readonly views: Views
  readonly events: Informer<KubeObject>
  /** The upstream copy of what this member made was deleted, or a tenant's pod that it runs. */
  copyDeleted(visit: Visit, copy: DeepReadonly<KubeObject>): void
}

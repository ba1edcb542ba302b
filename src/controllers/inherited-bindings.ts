// APIBindings that a parent marks with label kcp.dev/inherit: each logical cluster below gets a binding of its own to the
// same export, so that its provider sees it as a consumer. The mark goes on from child to child.
import { isStatusError } from '#apimachinery/status/index.ts'
import { apiBindings, inheritedFromAnnotation, inheritLabel, type APIBinding } from '#crds/index.ts'
import type { BindingFacts, SharedApis } from '#reconcile/object-graph/index.ts'
import { type ControllerContext, reconcileChanged } from './framework.ts'

const fieldManager = 'kcp-inherited-bindings'
/** The place of a child, of which all inherited bindings are looked at. */
const all = '*'
/** A child that was just created is served shortly after. */
const collectMs = 100

/** Creates inherited bindings until the signal aborts. */
export async function startInheritedBindings(context: ControllerContext): Promise<void> {
  const { sharing } = context
  if (sharing === undefined) return
  await sharing.ready()
  await reconcileChanged(context, {
    name: 'inherited-bindings',
    follow: {},
    listen(enqueue) {
      const stops = [
        sharing.follow({
          onExport: () => undefined,
          onBinding({ cluster, name, labels }, exists) {
            if (exists && isMarked(labels)) enqueue({ cluster, name })
            const parent = sharing.parentOf(cluster)
            // A child has deleted its own: the mark of the parent stands.
            if (!exists && parent !== undefined && sharing.markedIn(parent).length > 0)
              enqueue({ cluster, name: all }, collectMs)
          },
        }),
        sharing.followChildren((child, parent) => {
          if (sharing.markedIn(parent).length > 0) enqueue({ cluster: child, name: all }, collectMs)
        }),
      ]
      for (const { cluster, name } of sharing.allMarked()) enqueue({ cluster, name })
      return () => stops.forEach((stop) => stop())
    },
    reconcile: async ({ cluster, name }, { signal }) => {
      const work: Work = { sharing, context, signal }
      if (name === all) {
        const parent = sharing.parentOf(cluster)
        for (const marked of parent === undefined ? [] : sharing.markedIn(parent)) await inherit(marked, cluster, work)
        return
      }
      const marked = sharing.markedIn(cluster).find((one) => one.name === name)
      for (const child of marked === undefined ? [] : sharing.childrenOf(cluster))
        await inherit(marked as BindingFacts, child, work)
    },
  })
}

interface Work {
  readonly sharing: SharedApis
  readonly context: ControllerContext
  readonly signal: AbortSignal
}

function isMarked(labels: BindingFacts['labels']): boolean {
  return labels?.[inheritLabel] === 'true'
}

/** Creates the binding of a child, unless it has one of this name. */
async function inherit({ cluster, name }: BindingFacts, child: string, work: Work): Promise<void> {
  const { sharing, context, signal } = work
  if (sharing.hasBinding(child, name)) return
  const parent = await context.clientOf(cluster)?.tryGet<APIBinding>(apiBindings, { name }, { signal })
  if (parent === undefined || parent.metadata.deletionTimestamp !== undefined) return
  const { reference, deletionPolicy, admission } = parent.spec ?? {}
  const from = sharing.nameOf(cluster) ?? ''
  const { path = '', name: exportName = '' } = reference?.export ?? {}
  const object: APIBinding = {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIBinding',
    metadata: { name, labels: { [inheritLabel]: 'true' }, annotations: { [inheritedFromAnnotation]: from } },
    // Not the claims: what a provider sees of a logical cluster is for that one to say.
    spec: {
      reference: { export: { path: path === '' ? from : path, name: exportName } },
      ...(deletionPolicy !== undefined && { deletionPolicy }),
      ...(admission !== undefined && { admission }),
    },
  }
  try {
    await context.clientOf(child)?.create(apiBindings, object, { fieldManager, signal })
  } catch (error) {
    // Gone, being deleted, or bound meanwhile.
    if (!isStatusError(error) || ![403, 404, 409].includes(error.code)) throw error
  }
}

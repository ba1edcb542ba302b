// Keeps the condition Dangling of FlowSchemas: whether the priority level that they name exists. Requests of a logical
// cluster share its one budget; tools that make FlowSchemas wait for this condition.
import { groupResourceText, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { type ControllerContext, reconcileChanged } from './framework.ts'
import { flowSchemas, priorityLevels } from './resources.ts'

/** Upstream, kube-apiserver itself does the work of this controller. */
const fieldManager = 'api-priority-and-fairness-config-consumer-v1'
/** A FlowSchema and its priority level are often made together; one write suffices. */
const collectMs = 50
/** Takes the place of the namespace in keys of priority levels. */
const level = 'level'

/**
 * Reconciles FlowSchemas that change, and FlowSchemas whose priority level is created or deleted, until the signal
 * aborts.
 */
export async function startFlowSchemaStatus(context: ControllerContext): Promise<void> {
  const { graph } = context
  await reconcileChanged(context, {
    name: 'flow-schema-status',
    follow: {
      [groupResourceText(flowSchemas)]: ({ key: { cluster, name }, exists }, enqueue) => {
        if (exists) enqueue({ cluster, name }, collectMs)
      },
      [groupResourceText(priorityLevels)]: ({ key: { cluster, name }, exists, isNew }, enqueue) => {
        if (isNew || !exists) enqueue({ cluster, namespace: level, name })
      },
    },
    reconcile: async ({ cluster, namespace, name }, { client, enqueue, signal }) => {
      if (namespace !== level) return writeStatus(graph, client, { cluster, name }, signal)
      const quoted = JSON.stringify(name)
      const resource = groupResourceText(flowSchemas)
      for (const { key } of await graph.select(cluster, resource, ({ contains }) => contains(quoted), signal))
        enqueue({ cluster, name: key.name }, collectMs)
    },
  })
}

async function writeStatus(
  graph: ControllerContext['graph'],
  client: KubeClient,
  { cluster, name }: { cluster: string; name: string },
  signal: AbortSignal,
): Promise<void> {
  const flow = await client.tryGet<FlowSchema>(flowSchemas, { name }, { signal })
  if (flow === undefined) return
  const wanted = flow.spec.priorityLevelConfiguration.name
  const levelKey = { cluster, resource: groupResourceText(priorityLevels), namespace: '', name: wanted }
  const condition = danglingCondition(wanted, (await graph.get(levelKey, signal)) !== undefined)
  const current = flow.status?.conditions?.find(({ type }) => type === condition.type)
  if (isSame(current, condition)) return
  const patch = {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: { name },
    // A FlowSchema that was deleted meanwhile and made again is reconciled again.
    status: { conditions: [{ ...condition, lastTransitionTime: new Date().toISOString().replace(/\.\d+/, '') }] },
  }
  await client
    .patch(flowSchemas, { name }, 'apply', patch, { subresource: 'status', fieldManager, force: true, signal })
    .catch(tolerate('NotFound'))
}

interface FlowSchema extends KubeObject {
  readonly spec: { readonly priorityLevelConfiguration: { readonly name: string } }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

interface Condition {
  readonly type?: string
  readonly status?: string
  readonly reason?: string
  readonly message?: string
}

/** The condition in kube-apiserver's words (apf_controller.go). */
function danglingCondition(priorityLevel: string, exists: boolean): Condition {
  const named = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(priorityLevel)}`
  return exists
    ? { type: 'Dangling', status: 'False', reason: 'Found', message: `${named} and it exists` }
    : { type: 'Dangling', status: 'True', reason: 'NotFound', message: `${named} but there is no such object` }
}

function isSame(current: Condition | undefined, { status, reason, message }: Condition): boolean {
  return current?.status === status && current?.reason === reason && current?.message === message
}

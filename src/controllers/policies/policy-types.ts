// Checks the types of ValidatingAdmissionPolicies again when a kind that they are about is defined, changed or deleted. The server
// checks when a policy is written, and when its status is written by us.
import { groupResourceText, type KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import { clusterInKey, keyFor, parseKey } from '../../client/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import type { ControllerContext } from '../context/controller-context.ts'
import { customResourceDefinitions, validatingAdmissionPolicies } from '../context/resources.ts'

const fieldManager = 'validatingadmissionpolicy-status'
/** Definitions are written several times when they are created; one visit suffices. */
const collectMs = 200

/** Visits every CustomResourceDefinition that changes, until the signal aborts. */
export async function startPolicyTypes({ graph, clientOf, log, signal }: ControllerContext): Promise<void> {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const stop = graph.follow(groupResourceText(customResourceDefinitions), ({ key }) => {
    queue.addAfter(keyFor({ cluster: key.cluster, name: key.name }), collectMs)
  })
  await runController({
    name: 'policy-types',
    queue,
    log,
    signal,
    reconcile: async (key, visit) => {
      const { cluster = '', name } = parseKey(key)
      const client = clientOf(cluster)
      if (client === undefined) return
      const resource = groupResourceText(validatingAdmissionPolicies)
      for (const policy of await graph.select(cluster, resource, ({ contains }) => mayName(contains, name), visit)) {
        const current = await client.tryGet<KubeObject>(
          validatingAdmissionPolicies,
          { name: policy.key.name },
          { signal: visit },
        )
        if (current === undefined) continue
        // Who changed it meanwhile had it checked.
        await client
          .update(validatingAdmissionPolicies, current, { subresource: 'status', fieldManager, signal: visit })
          .catch(tolerate('Conflict', 'NotFound'))
      }
    },
  })
  stop()
}

/** Whether a policy names the resource, or parameters of its group. `definition`: PLURAL.GROUP. */
function mayName(contains: (text: string) => boolean, definition: string): boolean {
  const dot = definition.indexOf('.')
  return contains(`"${definition.slice(0, dot)}"`) || contains(`"${definition.slice(dot + 1)}/`)
}

// Repeats the type check of ValidatingAdmissionPolicies when a kind in them is defined, changed or deleted. The server
// checks a policy when the policy is written, and when this controller writes its status.
import { groupResourceText, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { type ControllerContext, reconcileChanged } from './framework.ts'
import { customResourceDefinitions, validatingAdmissionPolicies } from './resources.ts'

const fieldManager = 'validatingadmissionpolicy-status'
/** Definitions are written several times when they are created; one reconcile suffices. */
const collectMs = 200

/** Reconciles every CustomResourceDefinition that changes, until the signal aborts. */
export async function startPolicyTypes(context: ControllerContext): Promise<void> {
  await reconcileChanged(context, {
    name: 'policy-types',
    follow: {
      [groupResourceText(customResourceDefinitions)]: ({ key: { cluster, name } }, enqueue) =>
        enqueue({ cluster, name }, collectMs),
    },
    reconcile: async ({ cluster, name }, { client, signal }) => {
      const resource = groupResourceText(validatingAdmissionPolicies)
      const isNamed = ({ contains }: { contains: (text: string) => boolean }): boolean => mayName(contains, name)
      for (const policy of await context.graph.select(cluster, resource, isNamed, signal)) {
        const current = await client.tryGet<KubeObject>(
          validatingAdmissionPolicies,
          { name: policy.key.name },
          { signal },
        )
        if (current === undefined) continue
        // A change meanwhile was checked when it was made.
        await client
          .update(validatingAdmissionPolicies, current, { subresource: 'status', fieldManager, signal })
          .catch(tolerate('Conflict', 'NotFound'))
      }
    },
  })
}

/** Whether a policy names the resource, or parameters of its group. `definition`: PLURAL.GROUP. */
function mayName(contains: (text: string) => boolean, definition: string): boolean {
  const dot = definition.indexOf('.')
  return contains(`"${definition.slice(0, dot)}"`) || contains(`"${definition.slice(dot + 1)}/`)
}

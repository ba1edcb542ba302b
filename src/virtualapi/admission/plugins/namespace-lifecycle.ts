// Objects live in namespaces that exist and are not on their way out; three namespaces stay for ever.
import { forbidden, notFound } from '../../../apimachinery/status/index.ts'
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import { decodeObject } from '../../resources/object-bytes.ts'
import type { AdmissionPlugin, AdmissionRequest } from '../admission.ts'

const immortal: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])
const namespaces = { group: '', resource: 'namespaces' } as const

/** Refuses creates in missing (404) and terminating (403) namespaces, and deletion of the immortal ones (403). */
export const namespaceLifecycle: AdmissionPlugin = {
  name: 'NamespaceLifecycle',
  mutate: check,
  validate(request) {
    if (request.operation === 'DELETE') checkDelete(request)
  },
}

// In the mutating half, as upstream: who creates in a missing namespace hears that before anything else.
function check(request: AdmissionRequest): void {
  const { operation, definition, namespace, context, name } = request
  const { info } = definition
  if (!info.namespaced || operation === 'DELETE') return
  if (info.group === 'authorization.k8s.io' && info.resource === 'localsubjectaccessreviews') return
  const entry = context.objects.get('namespaces', '', namespace)
  if (entry === undefined) throw notFound(namespaces, namespace)
  if (operation !== 'CREATE' || !isTerminating(decodeObject(entry.bytes))) return
  throw forbidden(info, name, `unable to create new content in namespace ${namespace} because it is being terminated`, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ])
}

function checkDelete({ definition, name }: AdmissionRequest): void {
  const { group, resource } = definition.info
  if (group === '' && resource === 'namespaces' && immortal.has(name))
    throw forbidden(namespaces, name, 'this namespace may not be deleted')
}

function isTerminating(namespace: KubeObject): boolean {
  const status = namespace['status'] as { phase?: string } | undefined
  return namespace.metadata.deletionTimestamp !== undefined || status?.phase === 'Terminating'
}

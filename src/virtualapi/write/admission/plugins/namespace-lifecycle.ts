// Objects can be created only in namespaces that exist and are not terminating. Three namespaces cannot be deleted.
import { forbidden, notFound } from '#apimachinery/status/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'

const undeletable: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])
const namespaces = { group: '', resource: 'namespaces' } as const

/**
 * Refuses writes in missing namespaces (404), creates in terminating namespaces (403), and the deletion of `default`,
 * `kube-system` and `kube-public` (403).
 */
export const namespaceLifecycle: AdmissionPlugin = {
  name: 'NamespaceLifecycle',
  mutate: check,
  validate(request) {
    if (request.operation === 'DELETE') checkDelete(request)
  },
}

// Runs with the mutating plugins, as upstream: so that a missing namespace is reported before other errors.
function check(request: AdmissionRequest): void {
  const { operation, definition, namespace, context, name } = request
  const { info } = definition
  if (!info.namespaced || operation === 'DELETE') return
  if (info.group === 'authorization.k8s.io' && info.resource === 'localsubjectaccessreviews') return
  const entry = context.objects.get('namespaces', '', namespace)
  if (entry === undefined) throw notFound(namespaces, namespace)
  if (operation !== 'CREATE' || !isTerminating(entry)) return
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
  if (group === '' && resource === 'namespaces' && undeletable.has(name))
    throw forbidden(namespaces, name, 'this namespace may not be deleted')
}

/** True for a terminating namespace, by its entry in the watch cache. Most creates find the same entry again. */
const known = new WeakMap<Entry, boolean>()

function isTerminating(entry: Entry): boolean {
  let terminating = known.get(entry)
  if (terminating === undefined) {
    const { metadata, status } = decodeObject(entry.bytes) as KubeObject & { readonly status?: { phase?: string } }
    terminating = metadata.deletionTimestamp !== undefined || status?.phase === 'Terminating'
    known.set(entry, terminating)
  }
  return terminating
}

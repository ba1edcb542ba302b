// Nodes of members, which a logical cluster shows while pods of it run there. They belong to the member, so tenants
// cannot cordon, label or delete them here. Tenants may change nodes that they created themselves.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { mayWriteOwnFields } from './own-fields.ts'

/** Refuses with 403 every change of a member's node that the installation does not make. */
export const nodesOfMembers: AdmissionPlugin = {
  name: 'NodesOfMembers',
  validatesParts: true,
  validate(request, _object, old) {
    const { definition, operation, context, name } = request
    if (definition.storageKey !== 'nodes' || operation === 'CREATE' || mayWriteOwnFields(context)) return
    const member = (old ?? stored(request))?.metadata.annotations?.[memberAnnotation]
    if (member === undefined) return
    const reason = `it is a node of member cluster "${member}" and is shown while pods of this logical cluster run there: it cannot be changed here`
    throw forbidden(definition.info, name, reason)
  },
}

function stored({ context, name }: AdmissionRequest): KubeObject | undefined {
  const entry = context.objects.get('nodes', '', name)
  return entry === undefined ? undefined : decodeObject(entry.bytes)
}

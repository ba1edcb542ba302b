// The escalation and bind checks of RBAC as an admission plugin: no user may grant rights that the user does not have.
import type { RbacWriteCheck } from '#virtualapi/auth/authz/index.ts'
import type { AdmissionPlugin } from './admission.ts'

export function rbacWrites(check: RbacWriteCheck): AdmissionPlugin {
  return {
    name: 'RbacWrites',
    validate({ operation, definition, context, signal }, object, old) {
      if (object === undefined || definition.info.group !== 'rbac.authorization.k8s.io') return undefined
      const { user, cluster, work } = context
      const verb = operation === 'CREATE' ? 'create' : 'update'
      return check({ verb, object, user, cluster, work, signal, ...(old === undefined ? {} : { old }) })
    },
  }
}

// The admission plugins of every logical cluster, in order.
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { claimResize } from './claim-resize.ts'
import { defaultIngressClass, defaultStorageClass } from './default-classes.ts'
import { defaultTolerations } from './default-tolerations.ts'
import { externalNames } from './external-names.ts'
import { formerAccounts } from './former-accounts.ts'
import { ingressClassWarning } from './ingress-class-warning.ts'
import { installationFields } from './installation-fields.ts'
import { limitRanger } from './limit-ranger.ts'
import { logicalClusterLifecycle } from './logical-cluster-lifecycle.ts'
import { memberLimitWarnings } from './member-limit-warnings.ts'
import { namespaceLifecycle } from './namespace-lifecycle.ts'
import { namespacePodSecurity } from './namespace-pod-security.ts'
import { nodesOfMembers } from './nodes-of-members.ts'
import { objectsOfMembers } from './objects-of-members.ts'
import { nodeAndPriority } from './node-and-priority.ts'
import { podPriority } from './pod-priority.ts'
import { podSecurity, type MayRunPods } from './pod-security.ts'
import { runtimeClass } from './runtime-class.ts'
import { serviceAccount } from './service-account.ts'

/**
 * The plugins in order. `rbacWrites` refuses roles and bindings that grant more than the writer's own rights. It runs
 * last, when the object has its final form.
 */
export function standardPlugins({
  rbacWrites,
  mayRunPods = () => true,
}: { rbacWrites?: AdmissionPlugin; mayRunPods?: MayRunPods } = {}): readonly AdmissionPlugin[] {
  return [
    logicalClusterLifecycle,
    namespaceLifecycle,
    installationFields,
    formerAccounts,
    objectsOfMembers,
    nodesOfMembers,
    limitRanger,
    serviceAccount,
    podSecurity(mayRunPods),
    namespacePodSecurity,
    nodeAndPriority(mayRunPods),
    externalNames,
    podPriority,
    defaultTolerations,
    defaultStorageClass,
    claimResize,
    runtimeClass,
    defaultIngressClass,
    ingressClassWarning,
    memberLimitWarnings,
    ...(rbacWrites ? [rbacWrites] : []),
  ]
}

// Validation of the spec of a pod or pod template.
import type { V1PodSpec } from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { ObjectMeta } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  containersCauses,
  imageCauses,
  initContainersCauses,
  type Container,
  type ContainerContext,
} from './containers.ts'
import { dnsCauses, hostAliasCauses } from './dns-config.ts'
import { ephemeralContainersCauses } from './ephemeral-containers.ts'
import { hostProcessCauses, hostUsersCauses, osCauses } from './pod-os.ts'
import { podClaimsCauses, podResourcesCauses } from './pod-resources.ts'
import { containerResourceCauses } from './resource-names.ts'
import { resourceCauses } from './resources.ts'
import { affinityCauses, spreadCauses, tolerationCauses } from './scheduling.ts'
import { podSecurityCauses } from './security.ts'
import { between, label, labels, qualifiedName, requiredOneOf, subdomain } from './values.ts'
import { volumesCauses } from './volumes.ts'

export type PodSpec = Data<V1PodSpec>

const maxInt32 = 2 ** 31 - 1
const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']
const preemptionPolicies = ['PreemptLowerPriority', 'Never']

/**
 * Validation errors of the pod spec at `path`. `pod`: metadata of the pod; absent for a template, which has fewer
 * rules.
 */
export function podSpecCauses(path: string, spec: PodSpec, { pod }: { pod?: ObjectMeta } = {}): StatusCause[] {
  const { terminationGracePeriodSeconds: graceSeconds, restartPolicy, resourceClaims } = spec
  const { causes: volumeCauses, good: volumes } = volumesCauses(`${path}.volumes`, spec.volumes, pod?.name ?? '')
  const claims = new Set((resourceClaims ?? []).map(({ name }) => name).filter((name) => name !== ''))
  const context: ContainerContext = {
    volumes,
    claims,
    hostUsers: spec.hostUsers !== false,
    restartPolicy,
    graceSeconds,
  }
  const containers = (spec.containers as Container[] | null) ?? []
  const others = [...containers, ...(spec.initContainers ?? [])]
  return [
    ...(graceSeconds === undefined ? [fieldRequired(`${path}.terminationGracePeriodSeconds`)] : []),
    ...volumeCauses,
    ...podClaimsCauses(`${path}.resourceClaims`, resourceClaims),
    ...containersCauses(`${path}.containers`, containers, context),
    ...initContainersCauses(`${path}.initContainers`, spec.initContainers, containers, context),
    ...ephemeralContainersCauses(`${path}.ephemeralContainers`, spec.ephemeralContainers, others, context),
    ...podResourcesCauses(`${path}.resources`, spec, claims),
    ...hostNetworkCauses(`${path}.containers`, spec, { isPod: pod !== undefined }),
    ...requiredOneOf(`${path}.restartPolicy`, restartPolicy, ['Always', 'OnFailure', 'Never']),
    ...requiredOneOf(`${path}.dnsPolicy`, spec.dnsPolicy, dnsPolicies),
    ...labels(`${path}.nodeSelector`, spec.nodeSelector),
    ...podSecurityCauses(`${path}.securityContext`, spec),
    ...affinityCauses(`${path}.affinity`, spec.affinity),
    ...dnsCauses(`${path}.dnsConfig`, spec.dnsPolicy, spec.dnsConfig),
    ...gateCauses(path, spec),
    ...spreadCauses(`${path}.topologySpreadConstraints`, spec.topologySpreadConstraints),
    ...hostProcessCauses(path, spec),
    ...hostUsersCauses(path, spec),
    ...nameCauses(path, spec),
    ...tolerationCauses(`${path}.tolerations`, spec.tolerations),
    ...hostAliasCauses(`${path}.hostAliases`, spec.hostAliases),
    ...classCauses(path, spec),
    ...osCauses(path, spec),
    ...(pod === undefined ? [] : podOnlyCauses(path, spec)),
  ]
}

/** With hostNetwork, hostPort must equal containerPort. Templates may omit hostPort, because pods get it by default. */
function hostNetworkCauses(path: string, spec: PodSpec, { isPod }: { isPod: boolean }): StatusCause[] {
  if (spec.hostNetwork !== true) return []
  return ((spec.containers as Container[] | null) ?? []).flatMap(({ ports }, index) =>
    (ports ?? []).flatMap(({ containerPort, hostPort = 0 }, i) =>
      hostPort === containerPort || (!isPod && hostPort === 0)
        ? []
        : [
            fieldInvalid(
              `${path}[${index}].ports[${i}].hostPort`,
              hostPort,
              'must match `containerPort` when `hostNetwork` is true',
            ),
          ],
    ),
  )
}

/** Validates readiness gates and scheduling gates. */
function gateCauses(path: string, { readinessGates, schedulingGates }: PodSpec): StatusCause[] {
  const seen = new Set<string>()
  return [
    ...(readinessGates ?? []).flatMap(({ conditionType }, index) =>
      qualifiedName(`${path}.readinessGates[${index}].conditionType`, conditionType),
    ),
    ...(schedulingGates ?? []).flatMap(({ name }, index) => {
      const at = `${path}.schedulingGates[${index}]`
      const causes = qualifiedName(at, name)
      if (seen.has(name)) causes.push(fieldDuplicate(at, name))
      seen.add(name)
      return causes
    }),
  ]
}

function nameCauses(path: string, spec: PodSpec): StatusCause[] {
  const { serviceAccountName, nodeName, hostname, subdomain: domain } = spec
  return [
    ...(serviceAccountName ? subdomain(`${path}.serviceAccountName`, serviceAccountName) : []),
    ...(nodeName ? subdomain(`${path}.nodeName`, nodeName) : []),
    ...between(`${path}.activeDeadlineSeconds`, spec.activeDeadlineSeconds, 1, maxInt32),
    ...(hostname ? label(`${path}.hostname`, hostname) : []),
    ...(domain ? label(`${path}.subdomain`, domain) : []),
  ]
}

function classCauses(path: string, spec: PodSpec): StatusCause[] {
  const { priorityClassName, runtimeClassName, preemptionPolicy, overhead } = spec
  const at = `${path}.preemptionPolicy`
  return [
    ...(priorityClassName ? subdomain(`${path}.priorityClassName`, priorityClassName) : []),
    ...(runtimeClassName === undefined ? [] : subdomain(`${path}.runtimeClassName`, runtimeClassName)),
    ...(preemptionPolicy === undefined || preemptionPolicies.includes(preemptionPolicy)
      ? []
      : preemptionPolicy === ''
        ? [fieldRequired(at)]
        : [fieldNotSupported(at, preemptionPolicy, preemptionPolicies)]),
    ...(overhead === undefined ? [] : overheadCauses(`${path}.overhead`, overhead)),
  ]
}

/** Validates overhead: what a pod uses besides its containers. As upstream, with the rules for limits. */
export function overheadCauses(path: string, limits: Record<string, string>): StatusCause[] {
  return resourceCauses(path, { limits }, containerResourceCauses, new Set())
}

/** Rules for pods only: applying them to templates would break templates that were accepted before. */
function podOnlyCauses(
  path: string,
  { serviceAccountName, volumes, containers, initContainers }: PodSpec,
): StatusCause[] {
  const tokens = serviceAccountName
    ? []
    : (volumes ?? []).flatMap(({ projected }, index) =>
        (projected?.sources ?? []).flatMap(({ serviceAccountToken }, i) =>
          serviceAccountToken === undefined
            ? []
            : [
                fieldForbidden(
                  `${path}.volumes[${index}].projected.sources[${i}].serviceAccountToken`,
                  'must not be specified when serviceAccountName is not set',
                ),
              ],
        ),
      )
  return [
    ...tokens,
    ...imageCauses(`${path}.containers`, containers),
    ...imageCauses(`${path}.initContainers`, initContainers),
  ]
}

// Validation of the spec of a pod or pod template.
import type {
  V1PodReadinessGate,
  V1PodSchedulingGate,
  V1PodSpec,
  V1Volume,
  V1VolumeProjection,
} from '@kubernetes/client-node'
import type { ObjectMeta } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, labels, qualifiedName, subdomain } from './basic-rules.ts'
import {
  checkContainers,
  checkEphemeralContainers,
  imagesOfPod,
  initContainers,
  type Container,
  type ContainerContext,
} from './containers.ts'
import { dnsConfig, hostAlias } from './dns-config.ts'
import { checkHostUsers, hostProcess, operatingSystem } from './pod-os.ts'
import { podClaims, podResources } from './pod-resources.ts'
import { containerResource } from './resource-names.ts'
import { resourceRequirements } from './resources.ts'
import { affinity, spreadConstraints, tolerations } from './scheduling.ts'
import { podSecurity } from './security.ts'
import {
  all,
  between,
  each,
  fields,
  forbidden,
  given,
  oneOf,
  optional,
  present,
  required,
  unique,
  type Report,
  type Rule,
} from './vocabulary.ts'
import { checkVolumes } from './volumes.ts'

export type PodSpec = Data<V1PodSpec>
/** Metadata of the pod; undefined for a template, which has fewer rules. */
type Pod = ObjectMeta | undefined

/** Decoding sets an absent list to null. */
const containerList = ({ containers }: { readonly containers: readonly Container[] | null }): readonly Container[] =>
  containers ?? []

const volumesAndContainers: Rule<PodSpec, Pod> = (spec, report, pod) => {
  const { resourceClaims, initContainers: init = [] } = spec
  const volumes = checkVolumes(spec.volumes, pod?.name ?? '', report)
  const claims = new Set(resourceClaims?.map(({ name }) => name))
  claims.delete('')
  report.at('resourceClaims', podClaims, resourceClaims)
  const containers = containerList(spec)
  const context: ContainerContext = {
    volumes,
    claims,
    hostUsers: spec.hostUsers !== false,
    restartPolicy: spec.restartPolicy,
    graceSeconds: spec.terminationGracePeriodSeconds,
  }
  checkContainers(containers, report, context)
  if (init.length > 0)
    report.at('initContainers', initContainers, init, {
      ...context,
      names: new Set(containers.map(({ name }) => name)),
    })
  checkEphemeralContainers(spec.ephemeralContainers, [...containers, ...init], report, context)
  report.at('resources', podResources, spec, claims)
}

/** With hostNetwork, hostPort must equal containerPort. Templates may omit hostPort, because pods get it by default. */
const hostNetwork: Rule<PodSpec, Pod> = (spec, report, pod) => {
  if (spec.hostNetwork !== true) return
  for (const [index, { ports = [] }] of containerList(spec).entries())
    for (const [i, { containerPort, hostPort = 0 }] of ports.entries())
      if (hostPort !== containerPort && (pod !== undefined || hostPort !== 0))
        report.invalid(
          `containers[${index}].ports[${i}].hostPort`,
          hostPort,
          'must match `containerPort` when `hostNetwork` is true',
        )
}

/** The overhead of a pod, which it uses in addition to its containers. As upstream, it follows the rules of limits. */
export const overhead: Rule<Record<string, string>> = (limits, report) => {
  // As upstream, the path contains the member `limits`.
  limitsOfContainer({ limits }, report, new Set())
}
const limitsOfContainer = resourceRequirements(containerResource)

const sourcesWithoutToken = each(
  fields<Data<V1VolumeProjection>>({
    serviceAccountToken: forbidden('must not be specified when serviceAccountName is not set'),
  }),
)
const volumesWithoutToken = each(
  fields<Data<V1Volume>>({
    projected: (projected, report) => report.at('sources', sourcesWithoutToken, projected?.sources),
  }),
)

/** Rules for pods only, because existing templates that were accepted before may break them. */
const podOnly: Rule<PodSpec, Pod> = (spec, report, pod) => {
  if (pod === undefined) return
  if (!spec.serviceAccountName) report.at('volumes', volumesWithoutToken, spec.volumes)
  report.at('containers', imagesOfPod, spec.containers)
  report.at('initContainers', imagesOfPod, spec.initContainers)
}

export const podSpec = all<PodSpec, Pod>(
  fields<PodSpec>({ terminationGracePeriodSeconds: present(() => undefined) }),
  volumesAndContainers,
  hostNetwork,
  fields<PodSpec>({
    restartPolicy: required(oneOf(['Always', 'OnFailure', 'Never'])),
    dnsPolicy: required(oneOf(['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'])),
    nodeSelector: labels,
  }),
  podSecurity,
  fields<PodSpec>({ affinity: optional(affinity) }),
  dnsConfig,
  fields<PodSpec>({
    readinessGates: each(fields<Data<V1PodReadinessGate>>({ conditionType: qualifiedName })),
    schedulingGates: each<Data<V1PodSchedulingGate>>(
      all(
        ({ name }, report) => report.check(qualifiedName, name),
        unique('', ({ name }) => name),
      ),
    ),
    topologySpreadConstraints: spreadConstraints,
  }),
  hostProcess,
  (spec: PodSpec, report: Report) => checkHostUsers(spec, report),
  fields<PodSpec>({
    serviceAccountName: given(subdomain),
    nodeName: given(subdomain),
    activeDeadlineSeconds: between(1, 2 ** 31 - 1),
    hostname: given(label),
    subdomain: given(label),
    tolerations,
    hostAliases: each(hostAlias),
    priorityClassName: given(subdomain),
    runtimeClassName: optional(subdomain),
    preemptionPolicy: optional(required(oneOf(['PreemptLowerPriority', 'Never']))),
    overhead: optional(overhead),
  }),
  operatingSystem,
  podOnly,
)

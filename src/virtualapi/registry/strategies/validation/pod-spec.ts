// What must hold of the spec of a pod, on its own or in a template.
import type { V1PodDNSConfig, V1PodSecurityContext, V1PodSpec } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired, regexText } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { containersCauses, initContainersCauses, seccompCauses } from './containers.ts'
import { affinityCauses, spreadCauses, tolerationCauses } from './scheduling.ts'
import { between, ipAddress, label, labels, requiredOneOf, subdomain } from './values.ts'
import { validVolumes, volumeCauses } from './volumes.ts'

export type PodSpec = Data<V1PodSpec>

const maxInt32 = 2 ** 31 - 1
const sysctlText =
  'must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$'
const sysctl = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/
const searchText = regexText(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*',
  'example.com',
)
const search = /^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/

/** What is wrong with the spec of a pod at `path`. */
export function podSpecCauses(path: string, spec: PodSpec): StatusCause[] {
  const context = { volumes: validVolumes(spec.volumes), hostNetwork: spec.hostNetwork === true }
  const containers = (spec.containers as PodSpec['containers'] | null) ?? []
  return [
    ...volumeCauses(`${path}.volumes`, spec.volumes),
    ...containersCauses(`${path}.containers`, containers, context),
    ...initContainersCauses(`${path}.initContainers`, spec.initContainers, containers, context),
    ...requiredOneOf(`${path}.restartPolicy`, spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    ...requiredOneOf(`${path}.dnsPolicy`, spec.dnsPolicy, [
      'ClusterFirstWithHostNet',
      'ClusterFirst',
      'Default',
      'None',
    ]),
    ...labels(`${path}.nodeSelector`, spec.nodeSelector),
    ...securityCauses(`${path}.securityContext`, spec.securityContext),
    ...affinityCauses(`${path}.affinity`, spec.affinity),
    ...dnsCauses(`${path}.dnsConfig`, spec.dnsPolicy, spec.dnsConfig),
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      labels(`${path}.readinessGates[${index}].conditionType`, { [conditionType]: '' }),
    ),
    ...spreadCauses(`${path}.topologySpreadConstraints`, spec.topologySpreadConstraints),
    ...nameCauses(path, spec),
    ...between(`${path}.activeDeadlineSeconds`, spec.activeDeadlineSeconds, 1, maxInt32),
    ...tolerationCauses(`${path}.tolerations`, spec.tolerations),
    ...hostAliasCauses(`${path}.hostAliases`, spec.hostAliases),
  ]
}

function nameCauses(path: string, spec: PodSpec): StatusCause[] {
  const { serviceAccountName, nodeName, hostname, subdomain: domain, priorityClassName, runtimeClassName } = spec
  return [
    ...(serviceAccountName ? subdomain(`${path}.serviceAccountName`, serviceAccountName) : []),
    ...(nodeName ? subdomain(`${path}.nodeName`, nodeName) : []),
    ...(hostname ? label(`${path}.hostname`, hostname) : []),
    ...(domain ? label(`${path}.subdomain`, domain) : []),
    ...(priorityClassName ? subdomain(`${path}.priorityClassName`, priorityClassName) : []),
    ...(runtimeClassName === undefined ? [] : subdomain(`${path}.runtimeClassName`, runtimeClassName)),
  ]
}

function securityCauses(path: string, context: Data<V1PodSecurityContext> | undefined): StatusCause[] {
  if (context === undefined) return []
  const { runAsUser, runAsGroup, fsGroup, supplementalGroups, sysctls, seccompProfile } = context
  return [
    ...between(`${path}.fsGroup`, fsGroup, 0, maxInt32),
    ...between(`${path}.runAsUser`, runAsUser, 0, maxInt32),
    ...between(`${path}.runAsGroup`, runAsGroup, 0, maxInt32),
    ...(supplementalGroups ?? []).flatMap((group, index) =>
      between(`${path}.supplementalGroups[${index}]`, group, 0, maxInt32),
    ),
    ...(sysctls ?? []).flatMap(({ name }, index) => {
      const at = `${path}.sysctls[${index}].name`
      if (name === '') return [fieldRequired(at)]
      return name.length <= 253 && sysctl.test(name) ? [] : [fieldInvalid(at, name, sysctlText)]
    }),
    ...seccompCauses(`${path}.seccompProfile`, seccompProfile),
  ]
}

function dnsCauses(path: string, policy: string | undefined, config: Data<V1PodDNSConfig> | undefined): StatusCause[] {
  const { nameservers = [], searches = [], options = [] } = config ?? {}
  const causes: StatusCause[] = []
  if (policy === 'None' && config === undefined)
    causes.push(fieldRequired(path, 'must provide `dnsConfig` when `dnsPolicy` is None'))
  else if (policy === 'None' && nameservers.length === 0)
    causes.push(
      fieldRequired(`${path}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None'),
    )
  if (nameservers.length > 3)
    causes.push(fieldInvalid(`${path}.nameservers`, nameservers, 'must not have more than 3 nameservers'))
  if (searches.length > 32)
    causes.push(fieldInvalid(`${path}.searches`, searches, 'must not have more than 32 search paths'))
  return [
    ...causes,
    ...nameservers.flatMap((ip, index) => ipAddress(`${path}.nameservers[${index}]`, ip)),
    ...searches.flatMap((text, index) =>
      text === '.' || search.test(text.replace(/\.$/, ''))
        ? []
        : [fieldInvalid(`${path}.searches[${index}]`, text, searchText)],
    ),
    ...options.flatMap(({ name }, index) =>
      name ? [] : [fieldRequired(`${path}.options[${index}]`, 'must not be empty')],
    ),
  ]
}

function hostAliasCauses(path: string, aliases: PodSpec['hostAliases']): StatusCause[] {
  return (aliases ?? []).flatMap(({ ip, hostnames }, index) => [
    ...ipAddress(`${path}[${index}].ip`, ip),
    ...(hostnames ?? []).flatMap((name, i) => subdomain(`${path}[${index}].hostnames[${i}]`, name)),
  ])
}

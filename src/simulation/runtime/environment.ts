// The variables and files of a simulated container: from the pod, from ConfigMaps and Secrets.
import { join } from 'node:path/posix'
import type { Container, DataObject, EnvVar, Pod, Volume } from '#simulation/cluster/objects.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'

/** Longest value of a variable: each may name those before it several times, so their lengths could double each time. */
const maxValueLength = 32 * 1024

/** A text of a ConfigMap or Secret by key; undefined if the object is missing. */
function dataOf(
  simulation: Simulation,
  resource: 'configmaps' | 'secrets',
  key: string,
): Record<string, string> | undefined {
  const object: DataObject | undefined = simulation.cache[resource].get(key)
  if (object === undefined) return undefined
  const { data = {} } = object
  if (resource === 'configmaps') return { ...data }
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]),
  )
}

const words = { configmaps: 'configmap', secrets: 'secret' } as const

/** Why a volume of the pod cannot be mounted, in kubelet's words; undefined if all can. */
export function mountProblem(simulation: Simulation, { metadata, spec }: Pod): string | undefined {
  const namespace = metadata.namespace ?? ''
  for (const { name, configMap, secret } of spec.volumes ?? []) {
    const [resource, wanted, optional] =
      configMap !== undefined
        ? (['configmaps', configMap.name, configMap.optional] as const)
        : (['secrets', secret?.secretName, secret?.optional] as const)
    if (wanted === undefined || optional === true) continue
    if (dataOf(simulation, resource, `${namespace}/${wanted}`) === undefined)
      return `MountVolume.SetUp failed for volume "${name}" : ${words[resource]} "${wanted}" not found`
  }
  return undefined
}

/** Why the container cannot be configured, in kubelet's words; undefined if it can. */
export function configProblem(simulation: Simulation, { metadata }: Pod, container: Container): string | undefined {
  const namespace = metadata.namespace ?? ''
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    const [resource, ref] = configMapRef ? (['configmaps', configMapRef] as const) : (['secrets', secretRef] as const)
    if (ref?.name === undefined || ref.optional === true) continue
    if (dataOf(simulation, resource, `${namespace}/${ref.name}`) === undefined)
      return `${words[resource]} "${ref.name}" not found`
  }
  for (const { valueFrom } of container.env ?? []) {
    const { configMapKeyRef, secretKeyRef } = valueFrom ?? {}
    const [resource, ref] = configMapKeyRef
      ? (['configmaps', configMapKeyRef] as const)
      : (['secrets', secretKeyRef] as const)
    if (ref?.name === undefined || ref.optional === true) continue
    const data = dataOf(simulation, resource, `${namespace}/${ref.name}`)
    if (data === undefined) return `${words[resource]} "${ref.name}" not found`
    if (data[ref.key ?? ''] === undefined) {
      const kind = resource === 'configmaps' ? 'ConfigMap' : 'Secret'
      return `couldn't find key ${ref.key ?? ''} in ${kind} ${namespace}/${ref.name}`
    }
  }
  return undefined
}

/** The variables of the container, and those that every container has. */
export function environmentOf(simulation: Simulation, pod: Pod, container: Container): Record<string, string> {
  const namespace = pod.metadata.namespace ?? ''
  const found: Record<string, string> = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOSTNAME: pod.spec.hostname ?? pod.metadata.name ?? '',
    HOME: '/root',
    KUBERNETES_SERVICE_HOST: '10.96.0.1',
    KUBERNETES_SERVICE_PORT: '443',
  }
  for (const { configMapRef, secretRef, prefix = '' } of container.envFrom ?? []) {
    const [resource, ref] = configMapRef ? (['configmaps', configMapRef] as const) : (['secrets', secretRef] as const)
    const data = dataOf(simulation, resource, `${namespace}/${ref?.name ?? ''}`) ?? {}
    for (const [name, value] of Object.entries(data)) found[`${prefix}${name}`] = value
  }
  for (const variable of container.env ?? [])
    found[variable.name] = valueOf(simulation, pod, variable, found).slice(0, maxValueLength)
  return found
}

function valueOf(
  simulation: Simulation,
  pod: Pod,
  { value, valueFrom }: EnvVar,
  known: Readonly<Record<string, string>>,
): string {
  if (value !== undefined) return value.replaceAll(/\$\((\w+)\)/g, (whole, name: string) => known[name] ?? whole)
  const namespace = pod.metadata.namespace ?? ''
  const { configMapKeyRef, secretKeyRef, fieldRef } = valueFrom ?? {}
  if (configMapKeyRef !== undefined)
    return (
      dataOf(simulation, 'configmaps', `${namespace}/${configMapKeyRef.name ?? ''}`)?.[configMapKeyRef.key ?? ''] ?? ''
    )
  if (secretKeyRef !== undefined)
    return dataOf(simulation, 'secrets', `${namespace}/${secretKeyRef.name ?? ''}`)?.[secretKeyRef.key ?? ''] ?? ''
  return fieldRef === undefined ? '' : fieldOfPod(pod, fieldRef.fieldPath)
}

function fieldOfPod({ metadata, spec, status }: Pod, path: string): string {
  const fields: Readonly<Record<string, string | undefined>> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'spec.nodeName': spec.nodeName,
    'spec.serviceAccountName': spec.serviceAccountName,
    'status.podIP': status?.podIP,
    'status.hostIP': status?.hostIP,
  }
  const [, kind, key] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? []
  if (kind !== undefined && key !== undefined) return metadata[kind as 'labels' | 'annotations']?.[key] ?? ''
  return fields[path] ?? ''
}

/** The files that ConfigMaps and Secrets put into the container, by path. */
export function filesOf(simulation: Simulation, pod: Pod, container: Container): ReadonlyMap<string, string> {
  const found = new Map<string, string>([
    ['/etc/hostname', `${pod.spec.hostname ?? pod.metadata.name ?? ''}\n`],
    ['/etc/hosts', `127.0.0.1 localhost\n${pod.status?.podIP ?? ''} ${pod.metadata.name ?? ''}\n`],
    ['/etc/os-release', 'NAME="simulated"\n'],
  ])
  for (const { name, mountPath, subPath } of container.volumeMounts ?? []) {
    const volume = pod.spec.volumes?.find((one) => one.name === name)
    const files = volume === undefined ? {} : filesOfVolume(simulation, pod.metadata.namespace ?? '', volume)
    for (const [path, text] of Object.entries(files)) {
      if (subPath === undefined) found.set(join(mountPath, path), text)
      else if (subPath === path) found.set(mountPath, text)
    }
  }
  return found
}

function filesOfVolume(
  simulation: Simulation,
  namespace: string,
  { configMap, secret }: Volume,
): Record<string, string> {
  const [resource, name, items] =
    configMap !== undefined
      ? (['configmaps', configMap.name, configMap.items] as const)
      : (['secrets', secret?.secretName, secret?.items] as const)
  const data = name === undefined ? {} : (dataOf(simulation, resource, `${namespace}/${name}`) ?? {})
  if (items === undefined) return data
  return Object.fromEntries(items.flatMap(({ key, path }) => (data[key] === undefined ? [] : [[path, data[key]]])))
}

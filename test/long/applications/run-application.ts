// The life of an application in a member: it is applied, everything in it runs and is reached, and nothing is left of
// it.
import { expect } from 'chai'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Helm } from '#test/e2e/helm.ts'
import {
  ensurePrograms,
  kubectl,
  kubectlEnvironment,
  startProcess,
  waitFor,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'
import { labVersion, selects, standInProgram } from './lab-version.ts'
import { containersOf, isHook, nameOf, templateOf, type Manifest, type ServiceSpec } from './manifest.ts'
import { filesOf, type UnusableSource } from './catalogue.ts'
import { releaseName, settings, type Application } from './read-applications.ts'

/** A logical cluster whose pods run in one member. */
export interface Home {
  readonly kubeconfig: string
  readonly id: string
  readonly member: Cluster
  /** A folder for files. */
  readonly dir: string
  readonly helm: Helm
}

type Kubectl = (...args: readonly string[]) => Promise<CommandResult>

interface Listed {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: Record<string, string> }
  readonly status?: { readonly phase?: string }
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[]
}

/** Namespaces that every cluster has. */
const initialNamespaces: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease'])
const timeout = '--timeout=120s'
const within = { deadlineMs: 60_000, intervalMs: 500 }

/** Runs the application from its creation to its end. Resolves with the number of pods that ran. */
export async function runApplication(app: Application, home: Home): Promise<number> {
  const objects = labVersion(app.objects).map((object) => inNamespaceOf(app, object))
  const as: Kubectl = (...args) => kubectl(home.kubeconfig, args)
  const namespaces = namespacesOf(objects)
  try {
    await createNamespaces(app, objects, as)
    const file = manifestsFile(home)
    await writeFile(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'))
    await install(app, objects, file, home, as)
    await runs(app, objects, as)
    const pods = await podsIn(namespaces, as)
    await claimsAreBound(namespaces, as)
    await servicesResponse(app, objects, home, as)
    if (app.chart === undefined) await as('diff', '--server-side', '-f', file) // code 0: nobody changed anything
    await uninstall(app, home, as)
    for (const definitions of app.definitionFiles) await as('delete', '-f', definitions, timeout)
    await removeNamespaces(namespaces, as)
    await isGone(home)
    return pods.length
  } catch (error) {
    const described = await describe(namespaces, home, as)
    await uninstall(app, home, as).catch(() => undefined) // webhooks would refuse what the next application creates
    throw new Error(`${String(error)}\n${described}`, { cause: error })
  } finally {
    await removeNamespaces(namespaces, as).catch(() => undefined)
  }
}

/**
 * Resolves once `kubectl apply` has been refused for the reason that the catalogue gives, and what was created is
 * deleted.
 */
export async function isRefused(app: Application, home: Home): Promise<void> {
  const objects = labVersion(app.objects).map((object) => inNamespaceOf(app, object))
  const as: Kubectl = (...args) => kubectl(home.kubeconfig, args, { expectCode: 'any' })
  const file = join(home.dir, 'refused.json')
  await writeFile(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'))
  await createNamespaces(app, objects, as)
  const { code, stderr } = await as('apply', '--server-side', '-f', file)
  expect(code, stderr).to.equal(1)
  expect(stderr).to.contain(app.refused)
  const deleted = await as('delete', '-f', file, '--ignore-not-found', timeout)
  expect(deleted.code, deleted.stderr).to.equal(0)
  await removeNamespaces(namespacesOf(objects), as)
  await isGone(home)
}

/** Resolves once kubectl or Helm has answered what the catalogue says; nothing is created. */
export async function isUnusable(source: UnusableSource, folder: string, home: Home): Promise<void> {
  const { chart, paths = [], namespace = 'app', answer } = source
  if (chart === undefined) {
    const files = filesOf(paths, folder).flatMap((file) => ['-f', file])
    const apply = ['apply', '--dry-run=server', ...files]
    expect((await kubectl(home.kubeconfig, apply, { expectCode: 1 })).stderr).to.contain(answer)
    return
  }
  const install = ['install', releaseName, join(folder, chart.path), '-n', namespace, ...settings(source)]
  const problem = await home.helm.run(home.kubeconfig, ...install).then(
    () => 'none',
    (error: unknown) => String(error),
  )
  expect(problem).to.contain(answer)
}

/** The object with its namespace; cluster-scoped kinds have none. */
function inNamespaceOf(app: Application, object: Manifest): Manifest {
  if (object.metadata.namespace !== undefined || clusterScoped.has(object.kind)) return object
  return { ...object, metadata: { ...object.metadata, namespace: app.namespace } }
}

const clusterScoped: ReadonlySet<string> = new Set(
  `Namespace CustomResourceDefinition ClusterRole ClusterRoleBinding PriorityClass IngressClass StorageClass APIService
  ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding`.split(
    /\s+/,
  ),
)

function namespacesOf(objects: readonly Manifest[]): readonly string[] {
  const used = objects.flatMap(({ kind, metadata }) =>
    kind === 'Namespace' ? metadata.name : (metadata.namespace ?? []),
  )
  return [...new Set(used)]
}

/** Those that the application does not create itself, and what its real programs would create in them. */
async function createNamespaces(app: Application, objects: readonly Manifest[], as: Kubectl): Promise<void> {
  const own = new Set(objects.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.name))
  for (const name of namespacesOf(objects))
    if (!own.has(name) && !initialNamespaces.has(name)) await as('create', 'namespace', name)
  for (const file of app.definitionFiles) {
    await as('apply', '--server-side', '-f', file)
    await as('wait', '--for=condition=Established', '-f', file, '--timeout=60s')
  }
  for (const secret of app.secrets ?? []) {
    const [namespace = '', name = ''] = secret.split('/')
    await as('create', 'secret', 'generic', name, '-n', namespace, '--from-literal=auth=secret')
  }
}

/** What was created in the namespaces beside the application goes with them; claims outlive their StatefulSets. */
async function removeNamespaces(namespaces: readonly string[], as: Kubectl): Promise<void> {
  for (const name of namespaces)
    if (initialNamespaces.has(name)) await as('delete', 'pvc', '--all', '-n', name, timeout)
    else await as('delete', 'namespace', name, '--ignore-not-found', timeout)
}

async function install(
  app: Application,
  objects: readonly Manifest[],
  file: string,
  home: Home,
  as: Kubectl,
): Promise<void> {
  if (app.chartFolder !== undefined) {
    const renderer = join(home.dir, 'post-renderer')
    const script = join(import.meta.dirname, 'post-renderer.ts')
    await writeFile(renderer, `#!/bin/sh\nexec ${process.execPath} --disable-warning=ExperimentalWarning ${script}\n`)
    await chmod(renderer, 0o755)
    const args = [
      'install',
      releaseName,
      app.chartFolder,
      '-n',
      app.namespace,
      '--wait',
      '--wait-for-jobs',
      '--timeout',
      '3m',
    ]
    await home.helm.run(home.kubeconfig, ...args, '--post-renderer', renderer, ...settings(app))
    return
  }
  const crds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition')
  if (crds.length > 0) {
    const first = join(home.dir, 'definitions.json')
    await writeFile(first, crds.map((object) => JSON.stringify(object)).join('\n---\n'))
    await as('apply', '--server-side', '-f', first)
    await as('wait', '--for=condition=Established', '-f', first, '--timeout=60s')
  }
  // Server-side: definitions are too large for the annotation of the other way.
  const { stderr } = await as('apply', '--server-side', '-f', file)
  for (const line of stderr.split('\n').filter((one) => one.startsWith('Warning:'))) console.log(`      ${line}`)
}

/** Resolves once all workloads are as their tenant wants them; those that stay have told why. */
async function runs(app: Application, objects: readonly Manifest[], as: Kubectl): Promise<void> {
  const workloads = objects.filter((object) => templateOf(object) !== undefined && !isHook(object))
  for (const { kind, metadata } of workloads.filter((object) => !(nameOf(object) in (app.stays ?? {})))) {
    const at = ['-n', metadata.namespace ?? '']
    const name = `${kind.toLowerCase()}/${metadata.name}`
    if (kind === 'CronJob') {
      await as('create', 'job', `${metadata.name}-now`, `--from=${name}`, ...at)
      await as('wait', '--for=condition=Complete', `job/${metadata.name}-now`, ...at, timeout)
      await as('delete', 'job', `${metadata.name}-now`, ...at, timeout)
    } else if (kind === 'Job') await as('wait', '--for=condition=Complete', name, ...at, timeout)
    else if (kind === 'Pod') await as('wait', '--for=condition=Ready', name, ...at, timeout)
    else if (kind === 'ReplicaSet' || kind === 'ReplicationController') await replicasAreReady(name, at, as)
    else await as('rollout', 'status', name, ...at, timeout)
  }
  for (const [name, reason] of Object.entries(app.stays ?? {})) await tellsWhy(name, reason, objects, as)
}

async function replicasAreReady(name: string, at: readonly string[], as: Kubectl): Promise<void> {
  const counts = ['-o', 'jsonpath={.spec.replicas} {.status.readyReplicas}']
  await waitFor(
    async () => {
      const [wanted, ready] = (await as('get', name, ...at, ...counts)).stdout.split(' ')
      return wanted === ready
    },
    { what: `the replicas of ${name}`, deadlineMs: 120_000, intervalMs: 500 },
  )
}

/** The reason is in the Events of the workload or of its pods, or in a condition. */
async function tellsWhy(name: string, reason: string, objects: readonly Manifest[], as: Kubectl): Promise<void> {
  const object = objects.find((one) => nameOf(one) === name)!
  const at = ['-n', object.metadata.namespace ?? '']
  await waitFor(
    async () => {
      const events = (await as('get', 'events', ...at, '-o', 'jsonpath={.items[*].message}')).stdout
      const status = (await as('get', `${object.kind}/${object.metadata.name}`, ...at, '-o', 'jsonpath={.status}'))
        .stdout
      return (events + status).includes(reason)
    },
    { what: `${name} to tell its reason: ${reason}`, ...within },
  )
}

const listed = async (what: string, namespace: string, as: Kubectl): Promise<readonly Listed[]> =>
  (JSON.parse((await as('get', what, '-n', namespace, '-o', 'json')).stdout) as { items: Listed[] }).items

async function podsIn(namespaces: readonly string[], as: Kubectl): Promise<readonly Listed[]> {
  return (await Promise.all(namespaces.map((one) => listed('pods', one, as)))).flat()
}

async function claimsAreBound(namespaces: readonly string[], as: Kubectl): Promise<void> {
  const claims = (await Promise.all(namespaces.map((one) => listed('pvc', one, as)))).flat()
  const unbound = claims.filter(({ status }) => status?.phase !== 'Bound').map(({ metadata }) => metadata.name)
  expect(unbound, 'claims that are not bound').to.deep.equal([])
}

/** Every Service with pods has ready endpoints; one of them answers to a pod and through kubectl. */
async function servicesResponse(
  app: Application,
  objects: readonly Manifest[],
  home: Home,
  as: Kubectl,
): Promise<void> {
  const running = objects.filter((object) => templateOf(object) !== undefined && !(nameOf(object) in (app.stays ?? {})))
  const services = objects.filter((service) =>
    running.some((object) => !endsAtOnce(object) && selects(service, object, templateOf(object)!)),
  )
  for (const { metadata } of services)
    await waitFor(
      async () => {
        const { name, namespace = '' } = metadata
        const slices = await listed('endpointslices', namespace, as)
        return slices.some(
          ({ metadata: { labels = {} }, endpoints = [] }) =>
            labels['kubernetes.io/service-name'] === name &&
            endpoints.some(({ conditions }) => conditions?.ready === true),
        )
      },
      { what: `ready endpoints of Service ${metadata.name}`, ...within },
    )
  const [reached, port] =
    services.flatMap((service) => {
      const { ports = [] } = service.spec as ServiceSpec
      return ports.filter(({ protocol = 'TCP' }) => protocol === 'TCP').map((one) => [service, one.port] as const)
    })[0] ?? []
  if (reached === undefined || port === undefined) return
  const { name, namespace = '' } = reached.metadata
  const client = running.find((object) => !endsAtOnce(object) && selects(reached, object, templateOf(object)!))!
  const at = ['-n', namespace]
  const url = `http://${name}.${namespace}.svc.cluster.local:${portOf(reached, port, client)}/`
  const workload = `${client.kind.toLowerCase()}/${client.metadata.name}`
  const inPod = (await as('exec', workload, ...at, '--', standInProgram, 'get', url)).stdout
  expect(inPod, url).to.match(/^stand-in in /)
  expect(await throughPortForward(name, namespace, port, home.kubeconfig)).to.match(/^stand-in in /)
}

/** A name of a headless Service leads to its pods. */
function portOf({ spec }: Manifest, port: number, client: Manifest): number {
  const { clusterIP, ports = [] } = spec as ServiceSpec
  const target = clusterIP === 'None' ? (ports.find((one) => one.port === port)?.targetPort ?? port) : port
  if (typeof target === 'number') return target
  const named = containersOf(templateOf(client)!.spec).flatMap((container) => container.ports ?? [])
  return named.find(({ name }) => name === target)!.containerPort
}

const endsAtOnce = ({ kind }: Manifest): boolean => kind === 'Job' || kind === 'CronJob'

async function throughPortForward(name: string, namespace: string, port: number, kubeconfig: string): Promise<string> {
  const { kubectl: program } = await ensurePrograms(['kubectl'])
  await using forward = await startProcess({
    name: `applications-forward-${++forwards}`,
    command: program,
    args: ['--kubeconfig', kubeconfig, 'port-forward', '-n', namespace, `service/${name}`, `:${port}`],
    env: kubectlEnvironment(kubeconfig),
  })
  const address = await waitFor(() => /Forwarding from (127\.0\.0\.1:\d+)/.exec(forward.log())?.[1], {
    what: `kubectl port-forward; it printed: ${forward.log()}`,
    ...within,
  })
  return await (await fetch(`http://${address}/`)).text()
}

let forwards = 0

const manifestsFile = ({ dir }: Home): string => join(dir, 'manifests.json')

async function uninstall(app: Application, home: Home, as: Kubectl): Promise<void> {
  if (app.chart === undefined) await as('delete', '-f', manifestsFile(home), '--ignore-not-found', timeout)
  else await home.helm.run(home.kubeconfig, 'uninstall', releaseName, '-n', app.namespace, '--wait', '--timeout', '2m')
}

/** Resolves once the member has nothing of the logical cluster. */
async function isGone({ id, member }: Home): Promise<void> {
  await waitFor(
    async () => {
      const left = await leftIn(member, id)
      if (left.length === 0) return true
      throw new Error(left.join(' '))
    },
    { what: `${member.name} to have nothing of ${id}`, ...within },
  )
}

const synced =
  'deploy,sts,ds,rs,rc,jobs,cronjobs,pods,svc,endpointslices,ing,netpol,hpa,pdb,pvc,secrets,configmaps,sa,roles,rolebindings'
/** Made by every member in every namespace. */
const ofMembers: ReadonlySet<string> = new Set(['ConfigMap/kube-root-ca.crt', 'ServiceAccount/default'])

async function leftIn(member: Cluster, id: string): Promise<string[]> {
  const { stdout } = await member.kubectl(['get', synced, '--all-namespaces', '-o', 'json'])
  return (JSON.parse(stdout) as { items: Listed[] }).items
    .filter(
      ({ kind, metadata }) => metadata.namespace.startsWith(`${id}-`) && !ofMembers.has(`${kind}/${metadata.name}`),
    )
    .map(({ kind, metadata }) => `${metadata.namespace}/${kind}/${metadata.name}`)
}

/** What tells why something does not run. */
async function describe(namespaces: readonly string[], { member, id }: Home, as: Kubectl): Promise<string> {
  const texts: string[] = []
  const add = async (title: string, asked: Promise<CommandResult>): Promise<void> => {
    const { stdout } = await asked.catch((error: unknown) => ({ stdout: String(error) }))
    texts.push(`== ${title}\n${stdout}`)
  }
  for (const namespace of namespaces) {
    await add(namespace, as('get', 'deploy,sts,ds,rs,jobs,cronjobs,pods,svc,pvc,events', '-o', 'wide', '-n', namespace))
    const inMember = ['get', 'deploy,sts,ds,jobs,cronjobs,pods,pvc,events', '-o', 'wide', '-n', `${id}-${namespace}`]
    await add(`${namespace} in the member`, member.kubectl(inMember))
  }
  return texts.join('\n')
}

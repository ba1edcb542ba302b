// Real servers in members with real pods: each through a rollout, a scale, a move and the deletion of its namespace,
// beside the same manifest applied directly in a member. What a client asks of them has the same answer on both sides
// at every step.
import { expect } from 'chai'
import { join } from 'node:path'
import {
  createLogicalCluster,
  idOf,
  installOnHost,
  installWithoutHost,
  type Installation,
} from '#test/e2e/installation.ts'
import { kubectl, needsNodes, startCluster, waitFor, type Cluster, type CommandResult } from '#test/support/index.ts'
import { debianImages } from './real-programs/debian-images.ts'
import { realPrograms, type Question, type RealProgram } from './real-programs/programs.ts'

const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'default', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  // Its provisioner is part of the member's controller manager.
  provisioner: 'kubernetes.io/host-path',
}
/** The installation is on a host, and the tenant's requests go through the host's kube-apiserver. */
const isThroughHost = process.env['KCP_THROUGH_HOST'] === '1'
const timeout = '--timeout=300s'
const within = { deadlineMs: 300_000, intervalMs: 1000 }

/** One of the two places in which an application runs. */
type Side = (...args: readonly string[]) => Promise<CommandResult>

describe('real programs in members', function () {
  this.timeout(1_200_000)
  const stack = new AsyncDisposableStack()
  const members: Record<string, Cluster> = {}
  let installation: Installation
  let id: string
  let tenant: Side
  let direct: Side

  before(async function () {
    await needsNodes(this)
    this.timeout(1_800_000) // the first run downloads packages
    const archives = await debianImages()
    const flags = { 'kube-controller-manager': ['--enable-hostpath-provisioner=true'] }
    for (const name of ['east', 'west']) {
      const member = stack.use(await startCluster({ name, nodes: 1, flags }))
      members[name] = member
      for (const archive of archives) await member.node?.importImages(archive)
      await member.kubectl(['create', '-f', '-'], { input: storageClass })
    }
    if (isThroughHost) {
      const host = stack.use(await startCluster({ name: 'host', nodes: 0 }))
      installation = stack.use(await installOnHost({ host }))
    } else installation = stack.use(await installWithoutHost({ east: members['east']! }))
    for (const member of Object.values(members)) await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    // A cluster has its DNS before its first pod: programs resolve names when they start.
    for (const member of Object.values(members))
      await waitFor(() => hasNameserver(member), { what: `the nameserver of ${member.name}`, ...within })
    await createLogicalCluster(installation, 'acme', 'alice')
    id = await idOf(installation, 'acme')
    const kubeconfig = await installation.tenant('acme', 'alice')
    tenant = (...args) => kubectl(kubeconfig, args, { timeoutMs: 600_000 })
    direct = (...args) => members['east']!.kubectl([...args], { timeoutMs: 600_000 })
  })
  after(async function () {
    this.timeout(180_000)
    await stack.disposeAsync()
  })

  for (const program of realPrograms)
    it(`${program.title} does the same in a logical cluster`, async () => {
      const { name } = program
      const file = join(import.meta.dirname, 'real-programs', 'manifests', `${name}.yaml`)
      try {
        await tenant('create', 'namespace', name)
        await tenant('annotate', 'namespace', name, 'kcp.dev/clusters=east')
        await direct('create', 'namespace', name)
        await both((side) => side('apply', '-n', name, '-f', file))
        await both((side) => runs(program, side))
        for (const question of program.first) await both((side) => ask(program, question, side))
        await compare(program)

        for (const workload of program.workloads)
          await both(async (side) => {
            await side('rollout', 'restart', workload, '-n', name)
            await side('rollout', 'status', workload, '-n', name, timeout)
          })
        await compare(program)

        const { workload, from, to } = program.scale
        for (const replicas of from === to ? [] : [to, from]) {
          await both(async (side) => {
            await side('scale', workload, '-n', name, `--replicas=${replicas}`)
            await side('rollout', 'status', workload, '-n', name, timeout)
          })
          await compare(program)
        }

        await tenant('annotate', 'namespace', name, 'kcp.dev/clusters=west', '--overwrite')
        if (program.staysBecause === undefined) {
          for (const one of program.workloads)
            await waitFor(() => isIn(name, one, 'west'), { what: `${one} in west`, ...within })
          for (const one of program.workloads) await tenant('rollout', 'status', one, '-n', name, timeout)
        } else
          await waitFor(async () => (await held(name, program.workloads[0]!)).includes(program.staysBecause!), {
            what: 'the reason why it stays',
            ...within,
          })
        await compare(program)

        expect(await restarts(name, tenant), 'restarts').to.equal(0)
        await both((side) => side('delete', 'namespace', name, timeout))
        for (const member of Object.values(members))
          await waitFor(
            async () => !(await member.kubectl(['get', 'namespaces', '-o', 'name'])).stdout.includes(`${id}-${name}`),
            {
              what: `nothing of it in ${member.name}`,
              ...within,
            },
          )
      } catch (error) {
        const text = `${String(error)}\n${await described(name)}`
        console.log(text) // at once: the whole takes an hour
        throw new Error(text, { cause: error })
      } finally {
        await both((side) => side('delete', 'namespace', name, '--ignore-not-found', '--wait=false')).catch(
          () => undefined,
        )
      }
    })

  const both = async <T>(step: (side: Side) => Promise<T>): Promise<readonly [T, T]> =>
    await Promise.all([step(tenant), step(direct)])

  const runs = async ({ name, workloads }: RealProgram, side: Side): Promise<void> => {
    for (const workload of workloads) await side('rollout', 'status', workload, '-n', name, timeout)
  }

  const ask = async ({ name }: RealProgram, { pod, script, contains }: Question, side: Side): Promise<string> => {
    const { stdout } = await side('exec', '-n', name, pod, '--', 'bash', '-c', script)
    expect(stdout).to.include(contains)
    return stdout
  }

  const compare = async (program: RealProgram): Promise<void> => {
    for (const question of program.always) {
      const [ours, theirs] = await both((side) => ask(program, question, side))
      // The kubelet makes the full name of a pod of the namespace in the member (docs/limits.md).
      expect(ours.replaceAll(`${id}-${program.name}`, program.name), question.script).to.equal(theirs)
    }
  }

  const isIn = async (name: string, workload: string, member: string): Promise<boolean> => {
    const { stdout } = await tenant(
      'get',
      workload,
      '-n',
      name,
      '-o',
      'jsonpath={.metadata.annotations.kcp\\.dev/placed-on}',
    )
    const placed = JSON.parse(stdout || '{}') as Record<string, { state: string }>
    return Object.keys(placed).length === 1 && placed[member]?.state === 'Serving'
  }

  const held = async (name: string, workload: string): Promise<string> =>
    (await tenant('get', workload, '-n', name, '-o', 'jsonpath={.metadata.annotations.kcp\\.dev/held}')).stdout

  const hasNameserver = async (member: Cluster): Promise<boolean> => {
    const available = 'jsonpath={.items[?(@.metadata.name=="kcp-dns")].status.availableReplicas}'
    return Number((await member.kubectl(['get', 'deployments', '-n', 'kcp-system', '-o', available])).stdout) > 0
  }

  const restarts = async (name: string, side: Side): Promise<number> => {
    const format = 'jsonpath={range .items[*]}{.status.containerStatuses[*].restartCount}{" "}{end}'
    const { stdout } = await side('get', 'pods', '-n', name, '-o', format)
    return stdout.split(' ').reduce((sum, count) => sum + Number(count), 0)
  }

  const described = async (name: string): Promise<string> => {
    const texts = await both(async (side) => {
      const text = await side('get', 'all,events', '-n', name, '-o', 'wide').catch((error: unknown) => ({
        stdout: String(error),
      }))
      return text.stdout
    })
    return `--- in the logical cluster\n${texts[0]}\n--- directly\n${texts[1]}`
  }
})

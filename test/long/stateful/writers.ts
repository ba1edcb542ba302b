// An installation whose volumes move, and applications of a shell that write numbers: a lost or doubled write is seen.
import { expect } from 'chai'
import { kubectl, runKcp, shellImage, storageClasses, waitFor } from '#test/support/index.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { importKcp, kcpImage } from '#test/e2e/kcp-image.ts'
import { lab, storageOfLab, type Lab } from '#test/e2e/lab.ts'
import { namespace } from '#test/e2e/manifests.ts'
import type { VolumeMove } from './stateful-tenant.ts'
import { Way } from './way.ts'

/** Numbers, each flushed; a pod that starts goes on with the next number, and says so in another file. */
const script = [
  'cd /data; touch log; n=$(tail -n 1 log); [ -n "$n" ] || n=0',
  'echo "began at $n" >> starts',
  'while true; do n=$((n+1)); echo $n >> log; sync -d log; sleep 0.2; done',
].join('\n')

export class Writers implements AsyncDisposable {
  readonly lab: Lab
  readonly installation: Installation
  /** The ways to the members. */
  readonly ways: Readonly<Record<string, Way>>
  readonly #tenants = new Map<string, string>()
  readonly #stack: AsyncDisposableStack

  private constructor(lab: Lab, installation: Installation, ways: Record<string, Way>, stack: AsyncDisposableStack) {
    this.lab = lab
    this.installation = installation
    this.ways = ways
    this.#stack = stack
  }

  /** `volumes`: spec.volumes of the admins' Placement. */
  static async make(volumes: object): Promise<Writers> {
    const clusters = await lab()
    await storageOfLab()
    await using stack = new AsyncDisposableStack()
    const installation = stack.use(await installWithoutHost(clusters, ['--gateway-image', kcpImage]))
    const ways: Record<string, Way> = {}
    for (const name of ['east', 'west'] as const) {
      await importKcp(clusters[name])
      const way = stack.use(await Way.to(clusters[name]))
      ways[name] = way
      const args = ['member', 'join', name, '--kubeconfig', way.kubeconfig, '--service-network', 'Flat']
      await runKcp([...args, ...installation.flags])
    }
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    const made = new Writers(clusters, installation, ways, stack.move())
    await made.setVolumes(volumes)
    return made
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }

  async setVolumes(volumes: object): Promise<void> {
    const move = { drainSeconds: 5, soakSeconds: 0, forwardSeconds: 0 }
    const placement = { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'volumes' } }
    await kubectl(this.installation.admin, ['apply', '-f', '-'], { input: { ...placement, spec: { volumes, move } } })
  }

  async tenant(cluster: string): Promise<void> {
    await createLogicalCluster(this.installation, cluster, 'alice')
    this.#tenants.set(cluster, await this.installation.tenant(cluster, 'alice'))
  }

  /** The namespace of a tenant in members. */
  async namespaceBelow(cluster: string, space: string): Promise<string> {
    return `${await idOf(this.installation, cluster)}-${space}`
  }

  /** Runs kubectl in a namespace, given as CLUSTER/NAMESPACE. */
  async as(place: string, ...args: string[]): Promise<string> {
    const [cluster = '', space = ''] = place.split('/')
    return (await kubectl(this.#tenants.get(cluster) ?? '', ['-n', space, ...args], { timeoutMs: 120_000 })).stdout
  }

  async begin(place: string, member?: string): Promise<void> {
    const [cluster = '', space = ''] = place.split('/')
    const made =
      member === undefined
        ? { apiVersion: 'v1', kind: 'Namespace', metadata: { name: space } }
        : namespace(space, member)
    await kubectl(this.#tenants.get(cluster) ?? '', ['apply', '-f', '-'], { input: made })
  }

  async apply(place: string, items: readonly object[]): Promise<void> {
    const [cluster = '', space = ''] = place.split('/')
    await kubectl(this.#tenants.get(cluster) ?? '', ['-n', space, 'apply', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'List', items },
    })
  }

  async moves(space: string): Promise<VolumeMove[]> {
    const { stdout } = await kubectl(this.installation.admin, ['get', 'volumemoves', '-o', 'json'])
    return (JSON.parse(stdout) as { items: VolumeMove[] }).items.filter(({ spec }) => spec.namespace === space)
  }

  /** Resolves when the only pod of the application is ready in the member. */
  async runs(place: string, app: string, member: string, deadlineMs = 180_000): Promise<void> {
    const columns = String.raw`jsonpath={range .items[*]}{.metadata.annotations.kcp\.dev/member}:{.status.containerStatuses[0].ready} {end}`
    await waitFor(
      async () => {
        const found = (await this.as(place, 'get', 'pods', '-l', `app=${app}`, '-o', columns)).trim()
        if (found === `${member}:true`) return true
        const moves = await this.moves(place.split('/')[1] ?? '')
        throw new Error(`${found} ${JSON.stringify(moves.map(({ status }) => status))}`)
      },
      { what: `"${app}" in ${place} to be ready in ${member}`, deadlineMs, intervalMs: 1000 },
    )
  }

  /** Resolves with the move of the namespace once its condition Progressing has this reason, which a pattern names. */
  async obstacle(space: string, reason: RegExp, deadlineMs = 120_000): Promise<{ reason: string; message: string }> {
    return await waitFor(
      async () => {
        const conditions = (await this.moves(space)).flatMap(({ status }) => status?.conditions ?? [])
        const found = conditions.find((one) => one.type === 'Progressing' && reason.test(one.reason))
        if (found !== undefined) return found
        throw new Error(JSON.stringify(conditions))
      },
      { what: `a move in "${space}" to wait for ${String(reason)}`, deadlineMs, intervalMs: 500 },
    )
  }

  /** Checks that no number is missing and none was written twice. Resolves with the number of starts. */
  async check(place: string, workload: string): Promise<number> {
    const text = await this.as(place, 'exec', workload, '--', 'sh', '-c', 'head -n -1 /data/log')
    const lines = text.trimEnd().split('\n')
    const wrong = lines.findIndex((line, index) => Number(line) !== index + 1)
    expect(wrong, `${place}: the number in line ${wrong + 1} is ${lines[wrong]}`).to.equal(-1)
    return (await this.as(place, 'exec', workload, '--', 'cat', '/data/starts')).trim().split('\n').length
  }
}

export interface WriterOptions {
  readonly storageClass?: string
  readonly storage?: string
  readonly accessMode?: string
  readonly replicas?: number
  /** persistentVolumeClaimRetentionPolicy */
  readonly retention?: object
}

/** A StatefulSet that writes numbers into its volume. */
export function writer(
  app: string,
  {
    storageClass = storageClasses.late,
    storage = '64Mi',
    accessMode = 'ReadWriteOnce',
    replicas = 1,
    retention,
  }: WriterOptions = {},
): object {
  const container = {
    ...{ name: 'main', image: shellImage, command: ['sh', '-c', script] },
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    readinessProbe: { exec: { command: ['sh', '-c', 'test -s /data/log'] }, periodSeconds: 1 },
  }
  return {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: app } },
    spec: {
      ...{ serviceName: app, replicas, selector: { matchLabels: { app } } },
      ...(retention && { persistentVolumeClaimRetentionPolicy: retention }),
      template: {
        metadata: { labels: { app } },
        spec: { terminationGracePeriodSeconds: 1, containers: [container] },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: {
            ...{ accessModes: [accessMode], storageClassName: storageClass },
            resources: { requests: { storage } },
          },
        },
      ],
    },
  }
}

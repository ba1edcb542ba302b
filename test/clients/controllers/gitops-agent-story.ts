// A team's work with Argo CD's engine in one cluster: install, upgrade, correct drift, prune.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseDocument } from 'yaml'
import { read, untilGone, type ClusterAccess, type Seen } from './cluster-access.ts'
import type { GitRepository } from './git-repository.ts'
import type { GitopsAgent } from './gitops-agent.ts'
import { nextShopFiles, shopFiles } from './shop-manifests.ts'

/** The first version, as the repository has it before the agent starts. */
export const firstCommit = withoutDryRunOfNewKinds(shopFiles)

/** The chapters after the start of the agent, in order; each needs those before it. */
export const gitopsStory: readonly {
  readonly title: string
  readonly run: (cluster: ClusterAccess, agent: GitopsAgent, repository: GitRepository) => Promise<void>
}[] = [
  { title: 'installs an application of many kinds', run: installed },
  { title: 'changes nothing when it synchronizes the same commit again', run: repeat },
  { title: 'upgrades, removes dropped fields and prunes dropped objects', run: upgrade },
  { title: 'corrects drift and keeps what others added', run: correct },
  { title: 'prunes everything when the repository is empty', run: prune },
]

async function installed(cluster: ClusterAccess, agent: GitopsAgent): Promise<void> {
  // The first synchronization defines the kind of the widget; the engine sees it, and Argo CD retries, in the next one.
  const result = await agent.sync()
  expect(result.get('shop.example.com/Widget/shop/first')).to.match(/ (created|unchanged)$/)
  const deployment = await read(cluster, ['deployments/web', 'shop'])
  expect(Object.keys(deployment.metadata.annotations ?? {})).to.include('gitops-agent.argoproj.io/gc-mark')
  const kinds = ['ingresses', 'networkpolicies', 'poddisruptionbudgets', 'rolebindings', 'secrets']
  for (const what of ['cronjobs/report', ...kinds.map((kind) => `${kind}/web`), 'widgets/first'])
    await read(cluster, [what, 'shop'])
}

async function repeat(cluster: ClusterAccess, agent: GitopsAgent): Promise<void> {
  const before = await versions(cluster)
  const result = await agent.sync()
  expect(result.size).to.equal(14)
  expect([...result].filter(([, message]) => !/ (unchanged|configured)$/.test(message))).to.deep.equal([])
  expect(await versions(cluster)).to.deep.equal(before)
}

async function upgrade(cluster: ClusterAccess, agent: GitopsAgent, repository: GitRepository): Promise<void> {
  await repository.commit(withoutDryRunOfNewKinds(nextShopFiles))
  const result = await agent.sync()
  expect(result.get('networking.k8s.io/Ingress/shop/web')).to.equal('pruned')
  await untilGone(cluster, ['ingresses/web', 'shop'])
  const { data } = (await read(cluster, ['configmaps/settings', 'shop'])) as Seen & { data: unknown }
  expect(data).to.deep.equal({ colour: 'green' })
  const { spec } = (await read(cluster, ['widgets/first', 'shop'])) as Seen & { spec: { parts: unknown } }
  expect(spec.parts).to.deep.equal([
    { name: 'right', weight: 2 },
    { name: 'top', weight: 1 },
  ])
}

async function correct(cluster: ClusterAccess, agent: GitopsAgent): Promise<void> {
  const { kubectl } = cluster
  await kubectl(['-n', 'shop', 'patch', 'cm/settings', '--type=merge', '-p', '{"data":{"colour":"red","mine":"1"}}'])
  await kubectl(['-n', 'shop', 'scale', 'deploy/web', '--replicas=5'])
  await kubectl(['-n', 'shop', 'label', 'svc/web', 'somebody=was-here'])
  await kubectl(['-n', 'shop', 'delete', 'secret/web', 'role/web'])
  await agent.sync()
  const { data } = (await read(cluster, ['configmaps/settings', 'shop'])) as Seen & { data: unknown }
  expect(data).to.deep.equal({ colour: 'green', mine: '1' })
  const { spec } = (await read(cluster, ['deployments/web', 'shop'])) as Seen & { spec: { replicas: number } }
  expect(spec.replicas).to.equal(2)
  expect((await read(cluster, ['services/web', 'shop'])).metadata.labels?.['somebody']).to.equal('was-here')
  for (const what of ['secrets/web', 'roles/web']) await read(cluster, [what, 'shop'])
}

async function prune(cluster: ClusterAccess, agent: GitopsAgent, repository: GitRepository): Promise<void> {
  await repository.commit({})
  await agent.sync()
  for (const gone of ['namespaces/shop', 'customresourcedefinitions/widgets.shop.example.com'])
    await untilGone(cluster, [gone])
}

async function versions({ kubectl }: ClusterAccess): Promise<string[]> {
  const kinds = 'deploy,svc,ing,cm,secret,role,rolebinding,netpol,pdb,cronjob,widgets.shop.example.com'
  const { items } = JSON.parse((await kubectl(['-n', 'shop', 'get', kinds, '-o', 'json'])).stdout) as {
    items: KubeObject[]
  }
  return items.map(({ kind, metadata }) => `${kind}/${metadata.name} ${metadata.resourceVersion}`)
}

/**
 * The widget's definition is in the same commit: without this annotation, Argo CD fails the dry run of its kind. The
 * agent cannot apply on the server side, because it sets no field manager.
 */
function withoutDryRunOfNewKinds(files: Readonly<Record<string, string>>): Record<string, string> {
  const annotate = (text: string): string => {
    const document = parseDocument(text)
    document.setIn(['metadata', 'annotations', 'argocd.argoproj.io/sync-options'], 'SkipDryRunOnMissingResource=true')
    return document.toString()
  }
  return { ...files, 'shop/widget.yaml': annotate(files['shop/widget.yaml'] ?? '') }
}

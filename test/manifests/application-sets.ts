// Manifest sets of applications: our own, modelled on well-known ones, and those of projects, read from their modules.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { textsOf, writeSet, type ManifestSet } from './manifest-life.ts'
import { moduleFolders } from './module-files.ts'

const kubernetes = 'k8s.io/kubernetes'
const examples = 'test/e2e/testing-manifests'
/** By module, then by folder or file. */
const published: readonly (readonly [module: string, path: string])[] = [
  ...[
    `${examples}/statefulset/cassandra`,
    `${examples}/statefulset/cockroachdb`,
    `${examples}/statefulset/etcd`,
    `${examples}/statefulset/mysql-galera`,
    `${examples}/statefulset/mysql-upgrade`,
    `${examples}/statefulset/zookeeper`,
    `${examples}/guestbook`,
    `${examples}/ingress/http`,
    `${examples}/ingress/multiple-certs`,
    `${examples}/gpu/gce`,
    'cluster/addons/dns-horizontal-autoscaler',
    'cluster/addons/kube-network-policies',
    'cluster/addons/volumesnapshots',
  ].map((path) => [kubernetes, path] as const),
  ['github.com/argoproj/argo-cd/v3', 'manifests/ha/namespace-install.yaml'],
  ['github.com/argoproj/argo-rollouts', 'manifests/install.yaml'],
  ['github.com/argoproj/argo-rollouts', 'manifests/notifications-install.yaml'],
]

/** Titles of all sets, known before any download. */
export const applicationTitles: readonly string[] = [
  ...ownFiles().map((name) => name.slice(0, -'.yaml'.length)),
  ...published.map(([module, path]) => titleOf(module, path)),
]

/** All sets, each as one file in `dir`. Downloads missing modules. */
export async function applicationSets(dir: string): Promise<readonly ManifestSet[]> {
  const modules = await moduleFolders()
  const own = ownFiles().map((name) => writeSet(dir, name.slice(0, -'.yaml'.length), textsOf([join(folder, name)])))
  const others = published.map(([module, path]) => {
    const found = join(modules.get(module)!, path)
    const files = path.endsWith('.yaml') ? [found] : filesIn(found)
    return writeSet(dir, titleOf(module, path), textsOf(files))
  })
  return [...own, ...others]
}

const folder = join(import.meta.dirname, 'applications')

function ownFiles(): string[] {
  return readdirSync(join(import.meta.dirname, 'applications')).filter((name) => name.endsWith('.yaml'))
}

function titleOf(module: string, path: string): string {
  const project = module.split('/').findLast((part) => !/^v\d+$/.test(part)) ?? module
  return `${path.replace(/^.*testing-manifests\/|^cluster\/addons\/|^manifests\//, '').replace('.yaml', '')} of ${project}`
}

/** The files of a folder, recursively. */
function filesIn(found: string): string[] {
  const entries = readdirSync(found, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.yaml'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

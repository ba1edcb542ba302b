// Reads the manifests of the catalogue; charts are rendered by Helm.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { createHelm, type Helm } from '#test/e2e/helm.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { repositoryRoot } from '#test/support/index.ts'
import { applications, filesOf, type ApplicationSource } from './catalogue.ts'
import type { Manifest } from './manifest.ts'

export interface Application extends ApplicationSource {
  readonly namespace: string
  readonly objects: readonly Manifest[]
  /** The folder of the chart. */
  readonly chartFolder?: string
  /** Files. */
  readonly definitionFiles: readonly string[]
}

/** All applications with their objects, as their projects publish them. Downloads missing modules. */
export async function readApplications(): Promise<readonly Application[]> {
  const modules = await moduleFolders()
  await using helm = await createHelm('default')
  const read: Application[] = []
  for (const source of applications) {
    const folder = source.module === undefined ? repositoryRoot : modules.get(source.module)!
    read.push(await readApplication(source, folder, helm))
  }
  return read
}

async function readApplication(source: ApplicationSource, folder: string, helm: Helm): Promise<Application> {
  const { chart, paths = [], namespace = 'app', definitions = [] } = source
  const definitionFiles = definitions.map((file) => join(folder, file))
  if (chart === undefined) {
    const texts = filesOf(paths, folder).map((file) => readFileSync(file, 'utf8'))
    return { ...source, namespace, objects: texts.flatMap(objectsIn), definitionFiles }
  }
  const chartFolder = join(folder, chart.path)
  const args = [
    'template',
    releaseName,
    chartFolder,
    '-n',
    namespace,
    '--include-crds',
    '--kube-version',
    'v1.34.3',
    ...settings(source),
  ]
  const { stdout } = await helm.run('/dev/null', ...args)
  return { ...source, namespace, objects: objectsIn(stdout), chartFolder, definitionFiles }
}

export const releaseName = 'app'

/** The flags with which Helm sets the values of the chart. */
export const settings = ({ chart }: ApplicationSource): string[] =>
  (chart?.values ?? []).flatMap((value) => ['--set', value])

/** The objects of manifests in YAML, with the names of templates' values instead of these. */
export function objectsIn(text: string): Manifest[] {
  const filled = text.replaceAll(/\{\{ ?\.(\w+) ?\}\}/g, '$1')
  const documents = parseAllDocuments(filled, { version: '1.1' }) // as kubectl reads it: 0644 is octal
  return documents
    .map((document) => document.toJS() as (Manifest & { readonly items?: readonly Manifest[] }) | null)
    .filter((object) => object?.kind !== undefined)
    .flatMap((object) => (object!.kind === 'List' ? (object!.items ?? []) : [object!]))
}

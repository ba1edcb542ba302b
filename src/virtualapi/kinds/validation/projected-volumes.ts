// Validation of volumes whose files the kubelet writes: ConfigMap, Secret, downward API, and projected volumes with
// these and with tokens.
import type { V1DownwardAPIVolumeFile, V1KeyToPath, V1VolumeProjection } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fileMode, unreservedRelativePath } from './basic-rules.ts'
import { fieldRef, resourceRefOfVolume } from './env.ts'
import { all, each, fields, nonEmpty, type Report, type Rule } from './vocabulary.ts'

type Projection = Data<V1VolumeProjection>

const filePath = all<string>(nonEmpty(), unreservedRelativePath)

/** The file to which a key is written. */
export const keyToPath = fields<Data<V1KeyToPath>>({ key: nonEmpty(), path: filePath, mode: fileMode })

const fieldOfPod = fieldRef([
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
])

export const downwardFile: Rule<Data<V1DownwardAPIVolumeFile>> = (file, report) => {
  report.at('path', filePath, file.path)
  if (file.fieldRef) {
    report.at('fieldRef', fieldOfPod, file.fieldRef)
    if (file.resourceFieldRef)
      report.invalid('', 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')
  } else if (file.resourceFieldRef) report.at('resourceFieldRef', resourceRefOfVolume, file.resourceFieldRef)
  else report.required('', 'one of fieldRef and resourceFieldRef is required')
  report.at('mode', fileMode, file.mode)
}

/** The sources of a projected volume, which must all write different files. */
export const projections: Rule<readonly Projection[] | null | undefined> = (sources, report) =>
  report.each(sources, projection, new Set())

type Files = Set<string>

/**
 * One source of a projected volume. As upstream, conflicts and errors about a token's file are reported at the volume,
 * and some paths have no index.
 */
const projection: Rule<Projection, Files> = (source, report, written) => {
  const { secret, configMap, downwardAPI, serviceAccountToken: token } = source
  report.at('secret', keyed, secret, written)
  report.at('configMap', keyed, configMap, written)
  for (const file of downwardAPI?.items ?? []) {
    report.at('downwardAPI', downwardFile, file)
    noteFile(report, '../..', file.path, { shown: file.path, written })
  }
  if (token !== undefined) {
    const { expirationSeconds: seconds = 3600 } = token
    const at = 'serviceAccountToken.expirationSeconds'
    if (seconds < 600) report.invalid(at, seconds, 'may not specify a duration less than 10 minutes')
    if (seconds > 2 ** 32) report.invalid(at, seconds, 'may not specify a duration larger than 2^32 seconds')
    report.at('../../path', filePath, token.path)
  }
  if ([secret, configMap, downwardAPI, token].filter(Boolean).length > 1)
    report.forbidden('', 'may not specify more than 1 volume type per source')
}

const keyed: Rule<{ name?: string; items?: Data<V1KeyToPath>[] } | undefined, Files> = (from, report, written) => {
  if (from === undefined) return
  const { name = '', items } = from
  if (name === '') report.required('name')
  for (const [index, item] of (items ?? []).entries()) {
    report.at(`items[${index}]`, keyToPath, item)
    noteFile(report, '../../..', item.path, { shown: name, written })
  }
}

function noteFile(
  report: Report,
  at: string,
  file: string,
  { shown, written }: { shown: string; written: Files },
): void {
  if (file !== '' && written.has(file)) report.invalid(at, shown, 'conflicting duplicate paths')
  written.add(file)
}

export const keysToPaths = each(keyToPath)

// Field selectors of built-in kinds besides metadata.name and metadata.namespace.
import { isJsonObject, type JsonValue, type KubeObject, isJsonNumber } from '#apimachinery/meta/index.ts'

type Read = (object: KubeObject) => string
type Fields = Readonly<Record<string, Read>>

/** Reads the value at a dotted path, printed as Go does; `missing` if there is no string, number or boolean. */
function at(path: string, missing = ''): Read {
  const members = path.split('.')
  return (object) => {
    let value: JsonValue | undefined = object as unknown as JsonValue
    for (const member of members) value = isJsonObject(value) ? value[member] : undefined
    if (typeof value === 'string') return value
    return isJsonNumber(value) || typeof value === 'boolean' ? String(value) : missing
  }
}

function fields(paths: readonly string[], missing = ''): Fields {
  return Object.fromEntries(paths.map((path) => [path, at(path, missing)]))
}

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']
/** Both versions of Event read the stored form, which is core/v1. */
const eventFields: Fields = {
  ...fields(['reason', 'reportingComponent', 'type']),
  ...Object.fromEntries(involved.map((member) => [`involvedObject.${member}`, at(`involvedObject.${member}`)])),
  source: (event) => at('source.component')(event) || at('reportingComponent')(event),
}
const newEventFields: Fields = {
  ...fields(['reason', 'type']),
  reportingController: at('reportingComponent'),
  ...Object.fromEntries(involved.map((member) => [`regarding.${member}`, at(`involvedObject.${member}`)])),
}

const table: Readonly<Record<string, Fields>> = {
  pods: {
    ...fields([
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'status.phase',
      'status.podIP',
      'status.nominatedNodeName',
    ]),
    'spec.hostNetwork': at('spec.hostNetwork', 'false'),
    'status.podIPs': at('status.podIP'),
  },
  nodes: fields(['spec.unschedulable'], 'false'),
  namespaces: fields(['status.phase']),
  secrets: fields(['type']),
  services: fields(['spec.clusterIP', 'spec.type']),
  events: eventFields,
  'events.events.k8s.io': newEventFields,
  replicationcontrollers: fields(['status.replicas'], '0'),
  'jobs.batch': { 'status.successful': at('status.succeeded', '0') },
  'certificatesigningrequests.certificates.k8s.io': fields(['spec.signerName']),
  'resourceslices.resource.k8s.io': fields(['spec.nodeName', 'spec.driver']),
}

/** The field selectors of a resource. `groupResource`: `resource.group`, or `resource` in the core group. */
export function selectableFieldsOf(groupResource: string): Fields {
  return table[groupResource] ?? {}
}

// Discovery of the API group through which the host's kube-aggregator reaches logical clusters. The group is small on
// purpose: the host's namespace controller reads the discovery of all groups before it deletes a namespace, and waits
// while this server is down.
import { pathNotFound } from '#apimachinery/status/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { aggregatedFormat, discoveryDocument } from '#virtualapi/discovery/index.ts'
import { virtualGroup, virtualVersion } from '#virtualapi/request/parse-request.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import { aggregatedResponse } from './document-responses.ts'

const groupVersion = `${virtualGroup}/${virtualVersion}`
const version = { groupVersion, version: virtualVersion }
const verbs = ['create', 'delete', 'get', 'patch', 'update']

/** Answers `/apis`, `/apis/virtual.kcp.dev` and below, `/openapi/v2` and `/openapi/v3`. Throws 404 for other paths. */
export function aggregatedGroupDiscovery(exchange: Exchange, path: string): ApiResponse {
  switch (path) {
    case '/apis':
      return apis(exchange)
    case `/apis/${virtualGroup}`:
      return jsonDocument({ kind: 'APIGroup', apiVersion: 'v1', ...group() })
    case `/apis/${groupVersion}`:
      return jsonDocument({
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion,
        resources: [
          { name: 'logicalclusters/proxy', singularName: '', namespaced: false, kind: 'LogicalClusterProxy', verbs },
        ],
      })
    case '/openapi/v3':
      return jsonDocument({ paths: {} })
    case '/openapi/v2':
      return jsonDocument({
        swagger: '2.0',
        info: { title: 'kcp', version: virtualVersion },
        paths: {},
        definitions: {},
      })
    default:
      throw pathNotFound()
  }
}

function apis(exchange: Exchange): ApiResponse {
  const format = aggregatedFormat(exchange.header('accept'))
  return format === undefined
    ? jsonDocument({ kind: 'APIGroupList', apiVersion: 'v1', groups: [group()] })
    : aggregatedResponse(exchange, discoveryDocument(aggregatedForm()), format)
}

function group(): object {
  return { name: virtualGroup, versions: [version], preferredVersion: version }
}

function aggregatedForm(): object {
  const responseKind = { group: '', version: '', kind: 'LogicalClusterProxy' }
  const resource = {
    resource: 'logicalclusters',
    responseKind,
    scope: 'Cluster',
    singularResource: '',
    verbs: [],
    subresources: [{ subresource: 'proxy', responseKind, verbs }],
  }
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: [
      {
        metadata: { name: virtualGroup },
        versions: [{ version: virtualVersion, freshness: 'Current', resources: [resource] }],
      },
    ],
  }
}

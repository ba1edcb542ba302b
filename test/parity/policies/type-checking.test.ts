// Compares the warnings in status.typeChecking of ValidatingAdmissionPolicies with those of a real cluster, where
// kube-controller-manager writes them.
import { expect } from 'chai'
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import { compareRows, row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt } from '#test/parity/support/session.ts'

const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
const pods = [['', 'v1', 'pods']] as const
const deployments = [['apps', 'v1', 'deployments']] as const

interface Case {
  readonly about: string
  readonly kinds: readonly (readonly [group: string, version: string, resource: string])[]
  readonly spec: JsonObject
}

const validations = (...expressions: readonly string[]): JsonObject => ({
  validations: expressions.map((expression) => ({ expression })),
})

const cases: readonly Case[] = [
  { about: 'right types', kinds: deployments, spec: validations('object.spec.replicas > 1', 'oldObject == null') },
  {
    about: 'wrong types',
    kinds: deployments,
    spec: validations(
      "object.spec.replicas > '1'",
      'object.spec.nothing == 1',
      'object.metadata.labels.all(k, k == 1)',
      'object.metadata.creationTimestamp > 1',
      'object.spec.strategy.rollingUpdate.maxSurge > 1',
      'oldObject.spec.template.spec.containers.exists(c, c.image == 1)',
      'object.spec.template.spec.containers.all(c, c.resources.requests["cpu"] == "1")',
    ),
  },
  {
    about: 'messages',
    kinds: pods,
    spec: {
      validations: [
        { expression: 'true', messageExpression: 'string(object.spec.nothing)' },
        { expression: 'object.spec.containers[0].resources.limits.all(k, k == "cpu")' },
        { expression: 'object.spec.containers.all(c, c.resources.limits["cpu"] == 1)' },
      ],
    },
  },
  {
    about: 'several kinds',
    kinds: [
      ['apps', 'v1', 'deployments'],
      ['apps', 'v1', 'daemonsets'],
      ['', 'v1', 'configmaps'],
    ],
    spec: validations('object.spec.replicas > 1', 'object.metadata.name == ""'),
  },
  {
    about: 'any group',
    kinds: [['', 'v1', 'events']],
    spec: validations('object.involvedObject.name == ""'),
  },
  {
    about: 'wildcards and subresources',
    kinds: [
      ['*', 'v1', 'deployments'],
      ['apps', '*', 'deployments'],
      ['apps', 'v1', '*'],
      ['apps', 'v1', 'deployments/scale'],
    ],
    spec: validations('object.nothing == 1'),
  },
  {
    about: 'variables',
    kinds: deployments,
    spec: {
      variables: [
        { name: 'replicas', expression: 'object.spec.replicas' },
        { name: 'wrong', expression: 'object.spec.nothing' },
      ],
      ...validations('variables.replicas == "a"', 'variables.wrong == 1'),
    },
  },
  {
    about: 'parameters',
    kinds: pods,
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      ...validations('params.data.a == 1', 'params.nothing == 1', 'params.metadata.name == object.metadata.name'),
    },
  },
  {
    about: 'unknown parameters',
    kinds: pods,
    spec: { paramKind: { apiVersion: 'none.example.com/v1', kind: 'None' }, ...validations('params.data.a == 1') },
  },
  {
    about: 'the authorizer',
    kinds: pods,
    spec: validations(
      'authorizer.path("/").check("get").allowed()',
      'authorizer.requestResource.check("get").allowed()',
    ),
  },
  {
    about: 'a definition within itself',
    kinds: [['apiextensions.k8s.io', 'v1', 'customresourcedefinitions']],
    spec: validations(
      'object.spec.versions.all(v, v.schema.openAPIV3Schema.type == 1)',
      'object.spec.versions.all(v, v.schema.openAPIV3Schema.properties["a"].type == "string")',
    ),
  },
  {
    about: 'custom resources',
    kinds: [['$ID.example.com', 'v1', 'crontabs']],
    spec: validations(
      'object.spec.replicas > 1',
      "object.spec.replicas > '1'",
      'object.spec.maxRetries < 10',
      'object.spec.either == "a" || object.spec.either == 1',
      'object.metadata.uid == ""',
      'object.metadata.nothing == ""',
    ),
  },
]

const crontabs: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'crontabs.$ID.example.com' },
  spec: {
    group: '$ID.example.com',
    scope: 'Namespaced',
    names: { plural: 'crontabs', kind: 'CronTab' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { replicas: { type: 'integer' }, either: { 'x-kubernetes-int-or-string': true } },
              },
            },
          },
        },
      },
    ],
  },
}

function policy(name: string, { kinds, spec }: Case): JsonObject {
  const resourceRules = kinds.map(([group, version, resource]) => ({
    ...{ apiGroups: [group], apiVersions: [version], resources: [resource], operations: ['CREATE'] },
  }))
  return {
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', metadata: { name } },
    spec: { matchConstraints: { resourceRules }, ...spec },
  }
}

const rows: readonly Row[] = cases.map((one, index) =>
  row(`type checking: ${one.about}`, async (session) => {
    if (one.about === 'custom resources') {
      await session.send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
        body: crontabs,
        quiet: true,
      })
      await session.untilQuiet(
        '/openapi/v3',
        ({ body }) => isJsonObject(valueAt(body, 'paths') ?? null) && JSON.stringify(body).includes('example.com'),
      )
    }
    const name = `checked-${String(index)}.$ID`
    await session.send('POST', policies, { body: policy(name, one) })
    const { body } = await session.until(
      `${policies}/${name}`,
      (response) => valueAt(response.body, 'status.observedGeneration') === 1,
    )
    session.note('status', valueAt(body, 'status') ?? null)
    expect(isJsonObject(valueAt(body, 'status') ?? null)).to.equal(true)
    await session.patch(`${policies}/${name}`, { spec: { failurePolicy: 'Ignore' } })
    const changed = await session.until(
      `${policies}/${name}`,
      (response) => valueAt(response.body, 'status.observedGeneration') === 2,
    )
    session.note('status', valueAt(changed.body, 'status') ?? null)
  }),
)

describe("type checking of policies equals a real cluster's", function () {
  this.timeout(180_000)
  compareRows(rows, { name: 'types', controllerManager: true })
})

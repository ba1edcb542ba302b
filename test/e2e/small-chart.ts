// A chart of Helm with one Deployment and its Service, whose pods answer at once.
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agnhostImage } from '#test/support/index.ts'

/** Writes a chart with Deployment and Service `web` into a new directory, which the caller removes. */
export async function writeChart(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'kcp-chart-'))
  await mkdir(join(dir, 'templates'))
  const labels = { app: 'web' }
  const container = {
    name: 'web',
    image: agnhostImage,
    args: ['netexec', '--http-port=8080'],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
  }
  const template = { metadata: { labels }, spec: { containers: [container] } }
  const deployment = { selector: { matchLabels: labels }, template }
  const files = {
    'Chart.yaml': { apiVersion: 'v2', name: 'web', version: '1.0.0' },
    'values.yaml': { replicas: 2 },
    'templates/service.yaml': {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
    'templates/deployment.yaml': {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { replicas: 'REPLICAS', ...deployment },
    },
  }
  for (const [name, content] of Object.entries(files))
    await writeFile(join(dir, name), JSON.stringify(content).replace('"REPLICAS"', '{{ .Values.replicas }}'))
  return dir
}

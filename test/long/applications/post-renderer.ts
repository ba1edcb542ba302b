// For `helm install --post-renderer`: reads the manifests of a chart and prints those that the lab can run.
import { text } from 'node:stream/consumers'
import { labVersion } from './lab-version.ts'
import { objectsIn } from './read-applications.ts'

for (const object of labVersion(objectsIn(await text(process.stdin)))) console.log(`---\n${JSON.stringify(object)}`)

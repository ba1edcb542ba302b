import { installWithoutHost } from '#test/e2e/installation.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { defineStory } from '#test/e2e/story.ts'

endLabAfterAll()
defineStory('without a host: kcp start', installWithoutHost)

import { useEffect, useState } from 'preact/hooks';
import { get } from './api/http.ts';
import type { Caller } from '../../clients/typescript/src/generated/types.gen.ts';
import { Banner, MaintenanceBanner, ObservingBanner } from './layout/banner.tsx';
import { Header } from './layout/header.tsx';
import { LogIn } from './layout/log-in.tsx';
import { PAGES } from './pages/pages.ts';
import { Empty, Loading, Refusal } from './parts/states.tsx';
import { Toasts } from './parts/toasts.tsx';
import { usePoll } from './state/poll.ts';
import { type PageName, href, pageAt, place } from './state/route.ts';
import { me, mustLogIn } from './state/session.ts';
import type { ShownPage } from './pages/page-props.ts';

export function App() {
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      {mustLogIn.value ? <LogIn /> : <Inside />}
      <Toasts />
    </>
  );
}

/** Who the caller is may change while the page is open: a token is given another role, or ends. */
const ASK_WHO_EVERY_MS = 60_000;

function Inside() {
  const who = usePoll('me', (signal) => get<Caller>('/me', {}, signal), { everyMs: ASK_WHO_EVERY_MS });
  useEffect(() => {
    if (who.data) me.value = who.data;
  }, [who.data]);
  const found = pageAt(place.value.path);
  return (
    <>
      <Header current={found?.name} />
      <Banner />
      <ObservingBanner />
      <MaintenanceBanner />
      <main id="main" tabIndex={-1}>
        <Content problem={who.problem?.message} />
      </main>
    </>
  );
}

/**
 * Nothing is asked before the daemon has said who calls: it counts calls without a valid token, and refuses more than a few
 * of them.
 */
function Content({ problem }: { problem: string | undefined }) {
  const found = pageAt(place.value.path);
  if (me.value === null) return problem === undefined ? <Loading /> : <Refusal text={problem} />;
  if (found) return <Page key={place.value.path} name={found.name} params={found.params} />;
  return (
    <Empty title="There is no such page">
      <a href={href('/')}>Go to the overview</a>
    </Empty>
  );
}

function Page({ name, params }: { name: PageName; params: Record<string, string> }) {
  const { title } = PAGES[name];
  const { shown: Shown, isLost } = usePage(name);
  useEffect(() => {
    document.title = `${[...Object.values(params), title].join(' · ')} · firelock`;
  }, [name]);
  if (Shown !== null) return <Shown params={params} />;
  return isLost ? <Lost /> : <Loading />;
}

/** A browser does not ask again for a part of a page that it could not load. */
function Lost() {
  return (
    <Empty title="This page could not be loaded">
      <p>firelock did not answer, or another version of it runs by now.</p>
      <button
        type="button"
        onClick={() => {
          location.reload();
        }}
      >
        Reload
      </button>
    </Empty>
  );
}

/** Those that were loaded after the first ones: opened again, they are there at once. */
const loaded = new Map<PageName, ShownPage>();

/** The component of a page; null while it is loaded. It cannot be had where the daemon is away, or has other files by now. */
function usePage(name: PageName): { shown: ShownPage | null; isLost: boolean } {
  const { show } = PAGES[name];
  const [isLost, setLost] = useState(false);
  const [, setLoaded] = useState(loaded.size);
  const shown = typeof show === 'function' ? show : (loaded.get(name) ?? null);
  useEffect(() => {
    if (typeof show === 'function' || loaded.has(name)) return;
    show.load().then(
      (page) => {
        loaded.set(name, page);
        setLoaded(loaded.size);
      },
      () => {
        setLost(true);
      },
    );
  }, [name]);
  return { shown, isLost };
}

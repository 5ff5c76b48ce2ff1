"""`MixBanditSearchCV` on joblib's backends, real Dask and real Ray included: the same search as in one process."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.svm import SVC

import mixbandit as mb

pytestmark = pytest.mark.heavy

BACKENDS = ("loky", "threading", "multiprocessing", "dask", "ray")
X, y = make_classification(n_samples=120, n_features=5, random_state=0)
SPACE = {"C": mb.Float(1e-2, 1e2, log=True), "kernel": ["rbf", "linear"]}


class Fragile(SVC):
    """Cannot be fitted with a linear kernel."""

    def fit(self, X, y):
        if self.kernel == "linear":
            raise ArithmeticError(f"no linear kernel with C = {self.C:.3g}")
        return super().fit(X, y)


def process(estimator, X, y):
    """A scorer that says where it was called."""
    return float(os.getpid())


@pytest.fixture(scope="module")
def dask():
    import distributed  # here, because tests that are not heavy do without it

    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        yield


@pytest.fixture(scope="module")
def ray():
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


@pytest.fixture(params=BACKENDS)
def backend(request):
    """Two workers of this backend, inside the test."""
    name = request.param
    if name in ("dask", "ray"):
        request.getfixturevalue(name)
    with joblib.parallel_config(backend=name, n_jobs=2):
        yield name


def search(estimator, **options):
    return mb.MixBanditSearchCV(estimator, SPACE, n_trials=24, batch_size=4, random_state=0, **options)


def without_times(results):
    return {name: np.asarray(column).tolist() for name, column in results.items() if "time" not in name}


def test_a_backend_changes_nothing_but_the_time(backend):
    with joblib.parallel_config(backend="sequential"):
        alone = search(SVC()).fit(X, y)
    found = search(SVC()).fit(X, y)
    np.testing.assert_equal(without_times(found.cv_results_), without_times(alone.cv_results_))
    assert found.certificate_.to_json() == alone.certificate_.to_json()
    assert found.n_fits_ == 24


def test_the_fits_are_made_elsewhere(backend):
    once = mb.MixBanditSearchCV(SVC(), {"C": [1.0]}, cv=4, batch_size=4, scoring=process, refit=False).fit(X, y)
    places = {once.cv_results_[f"split{i}_test_score"][0] for i in range(4)}
    assert (os.getpid() in places) == (backend == "threading")


def test_errors_come_out_of_workers_as_they_are(backend):
    with pytest.raises(ArithmeticError, match="no linear kernel with C = "):
        search(Fragile(), error_score="raise").fit(X, y)
    with pytest.warns(FitFailedWarning, match="no linear kernel"):
        found = search(Fragile()).fit(X, y)
    assert found.best_params_["kernel"] == "rbf"
    assert found.certificate_.left_out["with a failed fit"] >= 1


SLOW = """
    import os, sys, time

    import joblib
    from sklearn.datasets import make_classification
    from sklearn.svm import SVC
    import mixbandit as mb

    class Slow(SVC):
        def fit(self, X, y):
            os.write(1, b"fitting\\n")  # one write, because threads share the stream
            time.sleep(0.5)
            return super().fit(X, y)

    if __name__ == "__main__":
        X, y = make_classification(n_samples=60, random_state=0)
        search = mb.MixBanditSearchCV(SVC(), {"C": mb.Float(0.1, 10.0)}, n_trials=4, random_state=0).fit(X, y)
        before = search.best_params_
        search.set_params(estimator=Slow(), n_trials=1000)
        try:
            with joblib.parallel_config(backend=sys.argv[1], n_jobs=2):
                search.fit(X, y)
        except KeyboardInterrupt:
            print("stopped, and as before" if search.best_params_ == before else "stopped, and changed", flush=True)
"""


@pytest.mark.parametrize("name", ["loky", "threading", "multiprocessing"])
def test_ctrl_c_stops_a_search_and_its_workers(name, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(textwrap.dedent(SLOW))
    command = [sys.executable, script, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as slow:
        try:
            fitting = [slow.stdout.readline() for _ in range(4)]
            os.killpg(slow.pid, signal.SIGINT)  # as a terminal does
            rest, _ = slow.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(slow.pid, signal.SIGKILL)
    assert set(fitting) == {"fitting\n"}
    assert rest.splitlines()[-1] == "stopped, and as before"

"""Size and SHA-256 of archives, as others published them for the same addresses."""

from collections.abc import Mapping

__all__ = ["CHECKSUMS"]

_TED = (
    "https://huggingface.co/datasets/iwslt2017/resolve/ebd7c60d9800c2a1be010a227e5f0a2363730f7a"
    "/data/2017-01-trnted/texts"
)

# statmt.org: TensorFlow Datasets, url_checksums/wmt*_translate.txt;
# IWSLT 2017: Hugging Face Datasets, datasets/iwslt2017/dataset_infos.json.
CHECKSUMS: Mapping[str, tuple[int, str]] = {
    "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz": (
        657632379,
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    ),
    "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz": (
        918311367,
        "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    ),
    "http://www.statmt.org/wmt14/training-parallel-nc-v9.tgz": (
        80418416,
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    ),
    "http://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz": (
        75178032,
        "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
    ),
    "http://data.statmt.org/wmt19/translation-task/dev.tgz": (
        38654961,
        "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
    ),
    f"{_TED}/en/de/en-de.tgz": (16751364, "623caec69988b224dbe741f16ad90411b93430117a8021c4bb2bcab7ad1eb21e"),
    f"{_TED}/de/en/de-en.tgz": (16751373, "ebcd53c53c8df742437e3a0fb964772e78764c3f6d4e38df0b6a2f71abc3a8b4"),
    f"{_TED}/en/fr/en-fr.tgz": (27691674, "1f5bd8cd242de15fb58a04af265adb8e604a7e1b805a42cb0de7dfd15447c5c6"),
    f"{_TED}/fr/en/fr-en.tgz": (26872507, "a40ca3b9a0064bd1fd582df4ced260dd3e7ff9f6f7bf863f139f74b7a5cabd78"),
    f"{_TED}/en/ja/en-ja.tgz": (26983540, "27322c1170d057a92f27edd475cfd2c46f38bd1acdd52bbcffbe725e78b3d472"),
    f"{_TED}/ja/en/ja-en.tgz": (26190272, "19b394f0256e7398bc69fb27c0fde15cd2a6c372a910ad99707ae32d54371640"),
    f"{_TED}/en/zh/en-zh.tgz": (27596371, "d178f2ede07d7d600e244649e2092fb5fcbdda9729a3bb016502512028e2615b"),
    f"{_TED}/zh/en/zh-en.tgz": (26848340, "8cecd4e8e196e5cd1e0af48b30e26c36acd33002d1e0f6e448570f68da290258"),
}
